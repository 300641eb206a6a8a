// Package container runs a MongoDB server in a container: a single-node replica set of the image
// BSONIDS_MONGO_IMAGE, mongo:8 by default. If the server of the image does not support replica
// sets, as the server of the image that build.sh makes, it runs as a standalone server.
package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	dockercontainer "github.com/docker/docker/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/mongodb"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	// DefaultImage is the image if BSONIDS_MONGO_IMAGE is not set.
	DefaultImage = "mongo:8"

	replicaSet = "rs0"
	port       = "27017/tcp"
	dataDir    = "/data/db"
)

// Image returns the image that Start runs.
func Image() string {
	if image := os.Getenv("BSONIDS_MONGO_IMAGE"); image != "" {
		return image
	}
	return DefaultImage
}

// Container is a container with a server. Its methods must not be called concurrently.
type Container struct {
	c     testcontainers.Container
	addr  string
	guard *guard

	volume  string
	args    []string
	created func(id string)
}

// Option changes how Start starts a container.
type Option func(*Container)

// WithVolume keeps the data in the named volume. The volume is created if it does not exist. It is
// not removed with the container.
func WithVolume(name string) Option { return func(c *Container) { c.volume = name } }

// Start starts a container and returns when its server accepts writes, at most two minutes after
// the image is available. If it fails, it removes the container, and the error contains the end of
// the log. The program must have called Guard.
func Start(ctx context.Context, opts ...Option) (_ *Container, err error) {
	if !guarded {
		return nil, errors.New("container: Start before Guard")
	}
	if err := Health(ctx); err != nil {
		return nil, err
	}

	c := &Container{args: []string{"--replSet", replicaSet}, created: func(string) {}}
	for _, opt := range opts {
		opt(c)
	}
	custom := []testcontainers.ContainerCustomizer{
		testcontainers.WithCmdArgs(c.args...),
		testcontainers.WithLifecycleHooks(testcontainers.ContainerLifecycleHooks{
			// Start the guard as soon as the container exists.
			PostCreates: []testcontainers.ContainerHook{func(_ context.Context, created testcontainers.Container) (err error) {
				c.guard, err = startGuard(created.GetContainerID())
				c.created(created.GetContainerID())
				return err
			}},
		}),
	}
	if c.volume != "" {
		custom = append(custom, testcontainers.WithMounts(testcontainers.VolumeMount(c.volume, dataDir)))
	}
	running, err := mongodb.Run(ctx, Image(), custom...)
	if running != nil {
		c.c = running.Container
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("container: starting %s: %w%s", Image(), err, c.quotedLog()), c.Terminate(context.WithoutCancel(ctx)))
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Health returns an error if no container engine answers. In that case testcontainers panics.
func Health(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("container: no engine answers: %v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return fmt.Errorf("container: no engine answers: %w", err)
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("container: no engine answers: %w", err)
	}
	return nil
}

// Addr returns the address of the server's mapped port, as host:port. Restart changes it.
func (c *Container) Addr() string { return c.addr }

// URI returns the connection string. It connects directly, because the name of the member in the
// replica set is not valid outside the container.
func (c *Container) URI() string { return "mongodb://" + c.addr + "/?directConnection=true" }

// ready finds the mapped port, initiates the replica set if the server supports it, and waits until
// the server accepts writes.
func (c *Container) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	host, err := c.c.Host(ctx)
	if err != nil {
		return err
	}
	mapped, err := c.c.MappedPort(ctx, port)
	if err != nil {
		return err
	}
	if host == "localhost" { // it may resolve to ::1 first, and the engine maps no port there
		host = "127.0.0.1"
	}
	c.addr = net.JoinHostPort(host, mapped.Port())

	client, err := mongo.Connect(options.Client().ApplyURI(c.URI()))
	if err != nil {
		return err
	}
	defer client.Disconnect(context.WithoutCancel(ctx))
	return writable(ctx, client.Database("admin"))
}

const (
	codeAlreadyInitialized = 23
	codeCommandNotFound    = 59
)

func writable(ctx context.Context, admin *mongo.Database) error {
	// This name of the member is valid inside the container after every start.
	initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{
		{Key: "_id", Value: replicaSet},
		{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: "127.0.0.1:27017"}}}},
	}}}
	initiated := false
	for {
		var err error
		if !initiated {
			err = admin.RunCommand(ctx, initiate).Err()
			var answer mongo.CommandError
			initiated = err == nil ||
				errors.As(err, &answer) && (answer.Code == codeAlreadyInitialized || answer.Code == codeCommandNotFound)
		}
		if initiated {
			var hello struct {
				IsWritablePrimary bool `bson:"isWritablePrimary"`
			}
			err = admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
			if err == nil && hello.IsWritablePrimary {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server takes no writes: %w", errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stopTimeout is the time a server may take to stop before the engine kills it. The only member of
// a replica set waits for a successor for 15 seconds, and the default of the engines is 10 seconds.
const stopTimeout = time.Minute

// Stop stops the server with SIGTERM. Restart starts it again.
func (c *Container) Stop(ctx context.Context) error {
	timeout := stopTimeout
	if err := c.c.Stop(ctx, &timeout); err != nil {
		return fmt.Errorf("container: stopping: %w", err)
	}
	return nil
}

// Kill stops the server with SIGKILL. Restart starts it again.
func (c *Container) Kill(ctx context.Context) error {
	err := withClient(ctx, func(client *testcontainers.DockerClient) error {
		stopped, failed := client.ContainerWait(ctx, c.c.GetContainerID(), dockercontainer.WaitConditionNotRunning)
		if err := client.ContainerKill(ctx, c.c.GetContainerID(), "KILL"); err != nil {
			return err
		}
		select {
		case <-stopped:
			return nil
		case err := <-failed:
			return err
		}
	})
	if err != nil {
		return fmt.Errorf("container: killing: %w", err)
	}
	return nil
}

// Restart starts a stopped or killed server with the same data, and returns when it accepts writes.
// Its address changes.
func (c *Container) Restart(ctx context.Context) error {
	err := withClient(ctx, func(client *testcontainers.DockerClient) error {
		return client.ContainerStart(ctx, c.c.GetContainerID(), dockercontainer.StartOptions{})
	})
	if err == nil {
		err = c.ready(ctx)
	}
	if err != nil {
		return fmt.Errorf("container: starting again: %w%s", err, c.quotedLog())
	}
	return nil
}

// Terminate removes the container, running or not. It also removes the data unless they are in a
// named volume.
func (c *Container) Terminate(ctx context.Context) error {
	var err error
	if c.c != nil {
		if err = c.c.Terminate(ctx, testcontainers.StopTimeout(0)); err != nil {
			err = fmt.Errorf("container: removing: %w", err)
		}
	}
	return errors.Join(err, c.guard.release(err == nil))
}

// RemoveVolume removes a volume of WithVolume. No container may use the volume.
func RemoveVolume(ctx context.Context, name string) error {
	err := withClient(ctx, func(client *testcontainers.DockerClient) error {
		return client.VolumeRemove(ctx, name, true)
	})
	if err != nil {
		return fmt.Errorf("container: removing volume %s: %w", name, err)
	}
	return nil
}

// Log returns the log of the server.
func (c *Container) Log(ctx context.Context) (string, error) {
	r, err := c.c.Logs(ctx)
	if err != nil {
		return "", fmt.Errorf("container: log: %w", err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("container: log: %w", err)
	}
	return string(b), nil
}

// quotedLog returns the end of the log for the text of an error. It is empty if there is no log.
func (c *Container) quotedLog() string {
	if c.c == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	log, err := c.Log(ctx)
	if err != nil || log == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return "\nthe end of the server's log:\n" + strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func withClient(ctx context.Context, f func(*testcontainers.DockerClient) error) error {
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(client), client.Close())
}
