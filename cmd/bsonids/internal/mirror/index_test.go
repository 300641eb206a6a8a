package mirror

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func text(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bsoncore.AppendString(nil, s)}
}

// The index has what a map has, in the order in which it was added, with and without a file.
func TestIndex(t *testing.T) {
	for _, n := range []int{0, 1, 900, 100_000} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		dir := t.TempDir()
		x := Index{Dir: dir}
		want := make(map[string][]string)
		for i := range n {
			fresh, old := fmt.Sprint(r.IntN(n)), fmt.Sprintf("%0*d", 1+r.IntN(90), r.IntN(3))
			if i == n/2 {
				old = string(make([]byte, 2*maxTail))
			}
			others, err := x.add(text(fresh), text(old))
			if err != nil {
				t.Fatal(err)
			}
			before := want[fresh]
			if at := slices.Index(before, old); at >= 0 {
				before = before[:at]
			} else {
				want[fresh] = append(slices.Clip(before), old)
			}
			if !slices.EqualFunc(others, before, func(v bson.RawValue, s string) bool { return v.Equal(text(s)) }) {
				t.Fatalf("%d: added after %d, want %d", i, len(others), len(before))
			}
		}
		for i := range n + 1 {
			got, err := x.of(text(fmt.Sprint(i)))
			if err != nil || !slices.EqualFunc(got, want[fmt.Sprint(i)], func(v bson.RawValue, s string) bool { return v.Equal(text(s)) }) {
				t.Fatalf("%d of %d: got %d, want %d, %v", i, n, len(got), len(want[fmt.Sprint(i)]), err)
			}
		}
		if (x.file != nil) != (n > 0) {
			t.Errorf("%d: file %v", n, x.file)
		}
		if err := x.forget(); err != nil {
			t.Fatal(err)
		}
		if got, err := x.of(text("0")); err != nil || len(got) > 0 {
			t.Errorf("%d: after it was forgotten: %v, %v", n, got, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// A directory that does not exist is an error when the file is made.
func TestIndexWithoutDirectory(t *testing.T) {
	x := Index{Dir: "/nonexistent"}
	if _, err := x.add(text("a"), text(string(make([]byte, maxTail)))); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func BenchmarkIndex(b *testing.B) {
	x := Index{Dir: b.TempDir()}
	defer func() { _ = x.Close() }()
	id := bson.RawValue{Type: bson.TypeBinary, Value: make([]byte, 21)}
	for i := range b.N {
		copy(id.Value[5:], fmt.Sprint(i))
		if _, err := x.add(id, id); err != nil {
			b.Fatal(err)
		}
	}
}
