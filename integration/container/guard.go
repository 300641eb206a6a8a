package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	dockercontainer "github.com/docker/docker/api/types/container"
	"github.com/testcontainers/testcontainers-go"
)

const guardVariable = "BSONIDS_GUARD_CONTAINER"

var guarded bool

// Guard must be the first call of a program that starts containers. Testcontainers starts a
// container that removes the containers of a program that panics or is killed; the image of that
// container must be pulled. If it is disabled (TESTCONTAINERS_RYUK_DISABLED=true), the program
// starts itself a second time for each container. In that second process Guard does not return: it
// removes the container if the first process ends without removing it.
func Guard() {
	id := os.Getenv(guardVariable)
	if id == "" {
		guarded = true
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // an interrupt is sent to the whole process group
	last := make([]byte, 1)
	if n, _ := io.ReadFull(os.Stdin, last); n == 1 {
		os.Exit(0) // released
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := withClient(ctx, func(client *testcontainers.DockerClient) error {
		return client.ContainerRemove(ctx, id, dockercontainer.RemoveOptions{Force: true, RemoveVolumes: true})
	})
	if err != nil && !errdefs.IsNotFound(err) {
		fmt.Fprintf(os.Stderr, "container: removing %s: %v\n", id, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// guard is the second process. Its standard input ends when the first process ends for any reason.
type guard struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startGuard(id string) (*guard, error) {
	if !testcontainers.ReadConfig().RyukDisabled {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), guardVariable+"="+id)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{cmd, stdin}, nil
}

// release tells the guard whether the container is removed, and waits for the guard to end.
func (g *guard) release(gone bool) error {
	if g == nil {
		return nil
	}
	var err error
	if gone {
		_, err = g.stdin.Write([]byte{0})
	}
	if err = errors.Join(err, g.stdin.Close(), g.cmd.Wait()); err != nil {
		return fmt.Errorf("container: guard: %w", err)
	}
	return nil
}
