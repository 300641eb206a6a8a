package mongotest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Python returns an interpreter that has PyMongo: BSONIDS_PYTHON if it is set, or else python3 in
// the path, or else the interpreter of the system, for which distributions package PyMongo. It
// skips the test if there is none, and fails it if BSONIDS_PYTHON has no PyMongo.
func Python(tb testing.TB) string {
	tb.Helper()
	name, err := python()
	if err != nil {
		if os.Getenv("BSONIDS_PYTHON") != "" {
			tb.Fatalf("BSONIDS_PYTHON has no PyMongo: %v", err)
		}
		Skip(tb, "PyMongo is missing: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return name
}

var python = sync.OnceValues(func() (string, error) {
	candidates := []string{"python3", "/usr/bin/python3"}
	if set := os.Getenv("BSONIDS_PYTHON"); set != "" {
		candidates = []string{set}
	}
	var errs []error
	for _, name := range candidates {
		var stderr bytes.Buffer
		cmd := exec.Command(name, "-c", "import pymongo")
		cmd.Stderr = &stderr
		err := cmd.Run()
		if err == nil {
			return name, nil
		}
		if lines := strings.Split(strings.TrimSpace(stderr.String()), "\n"); lines[len(lines)-1] != "" {
			err = errors.New(lines[len(lines)-1])
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return "", errors.Join(errs...)
})
