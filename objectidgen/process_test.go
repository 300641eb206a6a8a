package objectidgen

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const childVariable = "OBJECTIDGEN_TEST_CHILD"

// runChild runs this test binary again for the test that calls it, and returns the ids that it prints.
func runChild(t *testing.T, value string) []bson.ObjectID {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childVariable+"="+value)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var ids []bson.ObjectID
	for line := range bytes.Lines(out) {
		if hex, ok := bytes.CutPrefix(line, []byte("made ")); ok {
			id, err := bson.ObjectIDFromHex(string(bytes.TrimSpace(hex)))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

func printMade() {
	fmt.Printf("made %s\n", NewObjectID().Hex())
}

// A process draws its random bytes itself: they are the same throughout, and no other process's.
func TestProcessValue(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		printMade()
		printMade()
		return
	}
	processes := map[[5]byte]bool{Decode(NewObjectID()).Process: true}
	counters := map[uint32]bool{}
	for range 3 {
		ids := runChild(t, "1")
		if len(ids) != 2 {
			t.Fatalf("ids %v", ids)
		}
		a, b := Decode(ids[0]), Decode(ids[1])
		if a.Process != b.Process || (a.Counter+1)&0xFFFFFF != b.Counter {
			t.Errorf("one process: %+v, then %+v", a, b)
		}
		if processes[a.Process] {
			t.Errorf("the process value %x came twice", a.Process)
		}
		processes[a.Process] = true
		counters[a.Counter] = true
	}
	if len(counters) == 1 {
		t.Errorf("three processes start with the counter %v", counters)
	}
}
