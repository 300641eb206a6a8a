package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/testcontainers/testcontainers-go"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

const childVariable = "BSONIDS_TEST_CHILD"

func TestMain(m *testing.M) {
	Guard()
	if end := os.Getenv(childVariable); end != "" {
		child(end)
	}
	os.Exit(m.Run())
}

// need skips the test if containers are not requested. If they are requested, anything that is
// missing is a failure.
func need(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("BSONIDS_SERVER") != "container" {
		t.Skip("BSONIDS_SERVER is not container")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(ctx context.Context, t *testing.T, opts ...Option) *Container {
	t.Helper()
	c, err := Start(ctx, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Terminate(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// use connects again for each call, because the address of a container changes.
func use(ctx context.Context, t *testing.T, c *Container, f func(*mongo.Collection) error) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(c.URI()).SetServerSelectionTimeout(10 * time.Second))
	if err == nil {
		err = errors.Join(f(client.Database("db").Collection("c")), client.Disconnect(ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func insert(ctx context.Context, t *testing.T, c *Container, id string) {
	t.Helper()
	use(ctx, t, c, func(coll *mongo.Collection) error {
		// Before MongoDB 5.0, an acknowledged write may be lost with the process unless it was journaled.
		_, err := coll.Clone(options.Collection().SetWriteConcern(writeconcern.Journaled())).InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
		return err
	})
}

func wantIDs(ctx context.Context, t *testing.T, c *Container, want ...string) {
	t.Helper()
	var docs []struct {
		ID string `bson:"_id"`
	}
	use(ctx, t, c, func(coll *mongo.Collection) error {
		cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &docs)
	})
	var got []string
	for _, d := range docs {
		got = append(got, d.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the server holds %v, want %v", got, want)
	}
}

func wantClosed(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err == nil {
		conn.Close()
		t.Errorf("%s still accepts connections", addr)
	}
}

// exists asks the engine whether the container exists.
func exists(ctx context.Context, t *testing.T, id string) bool {
	t.Helper()
	err := withClient(ctx, func(client *testcontainers.DockerClient) error {
		_, err := client.ContainerInspect(ctx, id)
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestStopAndKill(t *testing.T) {
	ctx := need(t)
	c, err := Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	terminated := false
	defer func() {
		if !terminated {
			c.Terminate(ctx)
		}
	}()
	if _, port, err := net.SplitHostPort(c.Addr()); err != nil || port == "27017" {
		t.Errorf("address %s, want a mapped port", c.Addr())
	}
	if log, err := c.Log(ctx); err != nil || !strings.Contains(log, "Waiting for connections") {
		t.Errorf("log %q, %v", log, err)
	}

	insert(ctx, t, c, "1 before the stop")
	old := c.Addr()
	if err := c.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	wantClosed(t, old)
	if err := c.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	wantIDs(ctx, t, c, "1 before the stop")

	insert(ctx, t, c, "2 before the kill")
	old = c.Addr()
	if err := c.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	wantClosed(t, old)
	if err := c.Kill(ctx); err == nil || !strings.HasPrefix(err.Error(), "container: killing: ") {
		t.Errorf("killing a dead server: %v", err)
	}
	if err := c.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	insert(ctx, t, c, "3 after it")
	wantIDs(ctx, t, c, "1 before the stop", "2 before the kill", "3 after it")

	id := c.c.GetContainerID()
	terminated = true
	if err := c.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if exists(ctx, t, id) {
		t.Error("the container is still there")
	}
}

// TestVolume tests that another container with the same volume has the data of a killed container.
func TestVolume(t *testing.T) {
	ctx := need(t)
	volume := fmt.Sprintf("bsonids-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() { // after the clean-up of the containers
		if err := RemoveVolume(context.WithoutCancel(ctx), volume); err != nil {
			t.Error(err)
		}
	})
	one := start(ctx, t, WithVolume(volume))
	insert(ctx, t, one, "kept")
	if err := one.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	two := start(ctx, t, WithVolume(volume))
	wantIDs(ctx, t, two, "kept")
}

// TestStartFails tests that a server that does not start is an error with its log, and that no
// container remains.
func TestStartFails(t *testing.T) {
	ctx := need(t)
	var id string
	_, err := Start(ctx, func(c *Container) {
		c.args = []string{"--noSuchFlag"}
		c.created = func(created string) { id = created }
	})
	if err == nil || !strings.HasPrefix(err.Error(), "container: starting ") || !strings.Contains(err.Error(), "noSuchFlag") {
		t.Errorf("error %v, want one with the server's log", err)
	}
	if id == "" || exists(ctx, t, id) {
		t.Errorf("container %q is still there", id)
	}
}

func TestStartCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(need(t))
	var id string
	_, err := Start(ctx, func(c *Container) {
		c.created = func(created string) { id = created; cancel() }
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if id == "" || exists(context.Background(), t, id) {
		t.Errorf("container %q is still there", id)
	}
}

// child starts a container, writes its id, and ends without removing it.
func child(end string) {
	_, err := Start(context.Background(), func(c *Container) {
		c.created = func(id string) { fmt.Println("id", id) }
	})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	switch end {
	case "panic":
		panic("the test's own")
	case "wait":
		select {}
	}
}

// TestProcessEnds tests that the container is removed however the process ends.
func TestProcessEnds(t *testing.T) {
	for _, end := range []string{"panic", "kill"} {
		t.Run(end, func(t *testing.T) {
			ctx := need(t)
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), childVariable+"="+map[string]string{"panic": "panic", "kill": "wait"}[end])
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var id string
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				line := lines.Text()
				if strings.HasPrefix(line, "error ") {
					t.Fatal(line)
				}
				if rest, found := strings.CutPrefix(line, "id "); found {
					id = rest
				}
				if line == "ready" {
					break
				}
			}
			if id == "" {
				t.Fatal("the child started no container")
			}
			if end == "kill" {
				if !exists(ctx, t, id) {
					t.Fatal("the container is gone before its process")
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); err == nil {
				t.Fatal("the child ended well")
			}
			for deadline := time.Now().Add(time.Minute); exists(ctx, t, id); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the container is still there after a minute")
				}
			}
		})
	}
}

// TestUnguarded tests that Start fails if the program has not called Guard, because a second
// process would run the program again.
func TestUnguarded(t *testing.T) {
	guarded = false
	defer func() { guarded = true }()
	if _, err := Start(context.Background()); err == nil || !strings.Contains(err.Error(), "Guard") {
		t.Errorf("error %v", err)
	}
}

func TestNoEngine(t *testing.T) {
	if Health(context.Background()) == nil {
		t.Skip("an engine answers")
	}
	c, err := Start(context.Background())
	if err == nil {
		c.Terminate(context.Background())
	}
	if err == nil || !strings.HasPrefix(err.Error(), "container: no engine answers: ") {
		t.Errorf("error %v", err)
	}
}
