package mongotest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/integration/mongotest"
)

const childVariable = "BSONIDS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "unmanaged" {
		os.Exit(m.Run())
	}
	mongotest.Main(m)
}

// TestChild runs in processes that the other tests of this file start.
func TestChild(t *testing.T) {
	switch os.Getenv(childVariable) {
	case "":
		t.Skip("runs in the processes that other tests start")
	case "unmanaged", "pass":
		mongotest.Start(t)
	case "fail":
		mongotest.Start(t)
		t.Fatal("the test's own failure")
	case "wait":
		cs, err := connstring.Parse(mongotest.URI(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := connect(t, cs.Original).Database(cs.Database).Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("database", cs.Database)
		fmt.Println("serving", cs.Hosts[0])
		select {}
	case "skip":
		t.Run("one", func(t *testing.T) { mongotest.Skip(t, "no reason") })
		t.Run("two", func(t *testing.T) { mongotest.Skip(t, "a reason: of two parts") })
		t.Run("three", func(t *testing.T) { mongotest.Skip(t, "no reason") })
	case "features":
		s := mongotest.Start(t)
		for name, f := range features {
			t.Run(name, func(t *testing.T) { s.Require(t, f); fmt.Println("has", name) })
		}
	}
}

var features = map[string]*mongotest.Feature{
	"Transactions":     mongotest.Transactions,
	"ClientBulkWrite":  mongotest.ClientBulkWrite,
	"ChangeStreams":    mongotest.ChangeStreams,
	"QueryValidators":  mongotest.QueryValidators,
	"JSONSchema":       mongotest.JSONSchema,
	"CollMod":          mongotest.CollMod,
	"Sharding":         mongotest.Sharding,
	"DistinctSubtypes": mongotest.DistinctSubtypes,
	"BinaryOrder":      mongotest.BinaryOrder,
	"ExplainedIndexes": mongotest.ExplainedIndexes,
	"AtomicUpdates":    mongotest.AtomicUpdates,
	"UniqueUpdates":    mongotest.UniqueUpdates,
	"Merge":            mongotest.Merge,
	"Lookup":           mongotest.Lookup,
}

// command prepares a process that runs TestChild. The server is embedded unless env says otherwise.
// The process has its own directory for temporary files.
func command(t *testing.T, child string, env ...string) (cmd *exec.Cmd, tmp string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	tmp = t.TempDir()
	cmd = exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childVariable+"="+child, "BSONIDS_SERVER=embedded", "MONGODB_URI=", "BSONIDS_FEATURES=", "TMPDIR="+tmp)
	cmd.Env = append(cmd.Env, env...)
	return cmd, tmp
}

func output(t *testing.T, cmd *exec.Cmd) (out string, code int) {
	t.Helper()
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestExit(t *testing.T) {
	for _, tt := range []struct {
		child string
		env   []string
		code  int
		want  string
	}{
		{"pass", nil, 0, "PASS"},
		{"fail", nil, 1, "the test's own failure"},
		{"unmanaged", nil, 1, "mongotest.Main"},
		{"pass", []string{"BSONIDS_SERVER=oracle"}, 1, "want embedded, container or uri"},
		{"pass", []string{"BSONIDS_SERVER=uri"}, 1, "needs MONGODB_URI"},
		{"pass", []string{"BSONIDS_SERVER=uri", "MONGODB_URI=localhost"}, 1, `starts with "mongodb://"`},
		{"pass", []string{"BSONIDS_SERVER=", "MONGODB_URI=localhost"}, 1, `starts with "mongodb://"`},
	} {
		t.Run(strings.Join(append([]string{tt.child}, tt.env...), ","), func(t *testing.T) {
			cmd, tmp := command(t, tt.child, tt.env...)
			out, code := output(t, cmd)
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, want %d; output:\n%s\nwant in it: %s", code, tt.code, out, tt.want)
			}
			wantEmpty(t, tmp)
		})
	}
}

// kinds returns the kinds of servers that a child can start in this run.
func kinds() []string {
	if os.Getenv("BSONIDS_SERVER") == "container" {
		return []string{"embedded", "container"}
	}
	return []string{"embedded"}
}

// TestLogOnFailure tests that a run that fails prints the log of the server in the container.
func TestLogOnFailure(t *testing.T) {
	if len(kinds()) == 1 {
		mongotest.Skip(t, "BSONIDS_SERVER is not container")
	}
	cmd, _ := command(t, "fail", "BSONIDS_SERVER=container")
	out, code := output(t, cmd)
	if _, log, found := strings.Cut(out, "mongotest: the server's log:\n"); code != 1 || !found || !strings.Contains(log, "Waiting for connections") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

func TestInterrupt(t *testing.T) {
	for _, kind := range kinds() {
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			t.Run(kind+"/"+sig.String(), func(t *testing.T) { testInterrupt(t, kind, sig) })
		}
	}
}

func testInterrupt(t *testing.T, kind string, sig os.Signal) {
	cmd, tmp := command(t, "wait", "BSONIDS_SERVER="+kind)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var addr string
	for found := false; !found && lines.Scan(); {
		addr, found = strings.CutPrefix(lines.Text(), "serving ")
	}
	if conn, err := net.Dial("tcp", addr); err != nil {
		t.Errorf("the child serves nothing: %v", err)
	} else {
		conn.Close()
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if conn, err := net.DialTimeout("tcp", addr, 5*time.Second); err == nil {
		conn.Close()
		t.Error("the server is still there")
	}
	wantEmpty(t, tmp)
}

// TestInterruptLeavesNoDatabase tests that an interrupted run leaves no database on a server that
// keeps running.
func TestInterruptLeavesNoDatabase(t *testing.T) {
	uri := mongotest.URI(t)
	cmd, _ := command(t, "wait", "BSONIDS_SERVER=uri", "MONGODB_URI="+uri)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var database string
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "serving ") {
		if name, found := strings.CutPrefix(lines.Text(), "database "); found {
			database = name
		}
	}
	there := func() bool {
		names, err := connect(t, uri).ListDatabaseNames(t.Context(), bson.D{{Key: "name", Value: database}})
		if err != nil {
			t.Fatal(err)
		}
		return len(names) > 0
	}
	if database == "" || !there() {
		t.Fatalf("the child's database %q is not there", database)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if there() {
		t.Errorf("%s is still there", database)
	}
}

func TestSkip(t *testing.T) {
	cmd, _ := command(t, "skip")
	out, code := output(t, cmd)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := "mongotest: skipped 2: no reason: TestChild/one, TestChild/three\n" +
		"mongotest: skipped 1: a reason: of two parts: TestChild/two\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("output:\n%s\nwant at its end:\n%s", out, want)
	}
}

// TestRequireEmbedded tests that FerretDB v1.24.0 lacks every feature but the order of binary values,
// and that the reasons say so.
func TestRequireEmbedded(t *testing.T) {
	record := filepath.Join(t.TempDir(), "features")
	cmd, _ := command(t, "features", "BSONIDS_FEATURES="+record)
	out, code := output(t, cmd)
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	recorded, err := os.ReadFile(record)
	if err != nil || strings.Count(string(recorded), "lacks ") != len(features)-1 || strings.Count(string(recorded), "ran ") != 1 {
		t.Errorf("recorded %q, %v, want one line for each feature", recorded, err)
	}
	for name := range features {
		skipped, has := strings.Contains(out, "TestChild/"+name+"\n"), strings.Contains("\n"+out, "\nhas "+name)
		if skipped == has || has != (name == "BinaryOrder") {
			t.Errorf("%s: skipped %v, has %v:\n%s", name, skipped, has, out)
		}
	}
}

// TestRecord tests that the record names each feature of the server after its test has passed.
func TestRecord(t *testing.T) {
	record := filepath.Join(t.TempDir(), "features")
	cmd, _ := command(t, "features", "BSONIDS_FEATURES="+record, "BSONIDS_SERVER=uri", "MONGODB_URI="+mongotest.URI(t))
	out, code := output(t, cmd)
	recorded, err := os.ReadFile(record)
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	if ran, has := strings.Count("\n"+string(recorded), "\nran "), strings.Count("\n"+out, "\nhas "); ran != has {
		t.Errorf("%d features ran and %d are recorded:\n%s\n%s", has, ran, recorded, out)
	}
	cmd, _ = command(t, "features", "BSONIDS_FEATURES="+filepath.Join(record, "below a file"))
	if out, code := output(t, cmd); code != 1 || !strings.Contains(out, "mongotest: BSONIDS_FEATURES: ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestLacks(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, false},
		{mongo.CommandError{Code: 59}, true},
		{fmt.Errorf("wrapped: %w", mongo.CommandError{Code: 238}), true},
		{mongo.CommandError{Code: 115}, true}, // the bulkWrite command on MongoDB 7.0
		{mongo.CommandError{Code: 13}, false}, // Unauthorized
		{mongo.CommandError{Code: 11000}, false},
		{mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 11000}}}, false},
	} {
		if got := mongotest.Lacks(tt.err); got != tt.want {
			t.Errorf("Lacks(%v) = %v", tt.err, got)
		}
	}
}
