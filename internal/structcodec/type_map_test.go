package structcodec

import (
	"reflect"
	"sync"
	"testing"
)

// TestTypeMap adds types from several goroutines, and looks them up meanwhile.
func TestTypeMap(t *testing.T) {
	const n = 200
	typeOf := func(i int) reflect.Type { return reflect.ArrayOf(i, tByte) }
	var m, small typeMap[int]
	if _, ok := m.load(typeOf(0)); ok {
		t.Fatal("an empty map has a value")
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for j := range n {
				i := (j + g*n/4) % n
				if v, ok := m.load(typeOf(i)); ok && v != i {
					t.Errorf("type %d: got the value %d", i, v)
				}
				if v := m.loadOrStore(typeOf(i), i); v != i {
					t.Errorf("type %d: got the value %d", i, v)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		if v, ok := m.load(typeOf(i)); !ok || v != i {
			t.Errorf("type %d: got the value %d, %v", i, v, ok)
		}
		if v := m.loadOrStore(typeOf(i), -1); v != i {
			t.Errorf("type %d: was stored again", i)
		}
	}
	// The table is the smallest whose length is a power of two, 8 or more, and of which half is free.
	size := 8
	for used := range n + 1 {
		for 2*used > size {
			size *= 2
		}
		if used > 0 {
			small.loadOrStore(typeOf(used), used)
			if table := small.table.Load(); len(table.entries) != size || table.used != used {
				t.Errorf("%d types take %d entries, of which %d are used; want %d", used, len(table.entries), table.used, size)
			}
		}
	}
	if _, ok := m.load(typeOf(n)); ok {
		t.Error("a type that was not added has a value")
	}
}
