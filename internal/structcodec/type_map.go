package structcodec

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// A typeMap is a map from types to values that is read far more often than it is written. A [sync.Map] hashes the type
// for each look-up, which takes as long as a few fields of a document; a typeMap takes the address of the type for it.
// It is safe for concurrent use.
type typeMap[V any] struct {
	writing sync.Mutex
	table   atomic.Pointer[typeTable[V]]
}

// A typeTable is an open-addressed hash table that is not changed any more. Its length is a power of two, and at least
// half of its entries are free.
type typeTable[V any] struct {
	entries []typeEntry[V]
	used    int
}

type typeEntry[V any] struct {
	address uintptr      // of t, 0 if the entry is free
	t       reflect.Type // which it keeps
	value   V
}

// address returns the address of t. Types do not move.
func address(t reflect.Type) uintptr { return reflect.ValueOf(t).Pointer() }

// load returns the value of t.
func (m *typeMap[V]) load(t reflect.Type) (value V, ok bool) {
	table := m.table.Load()
	if table == nil {
		return value, false
	}
	e := table.find(address(t))
	return e.value, e.address != 0
}

// find returns the entry of the type at address, or the free one where it belongs.
func (table *typeTable[V]) find(address uintptr) *typeEntry[V] {
	mask := uintptr(len(table.entries) - 1)
	for i := address >> 5; ; i++ { // the lower bits of most addresses are zero
		if e := &table.entries[i&mask]; e.address == address || e.address == 0 {
			return e
		}
	}
}

// loadOrStore returns the value of t, which is value if it had none.
func (m *typeMap[V]) loadOrStore(t reflect.Type, value V) V {
	m.writing.Lock()
	defer m.writing.Unlock()
	old := m.table.Load()
	if old == nil {
		old = new(typeTable[V])
	} else if e := old.find(address(t)); e.address != 0 {
		return e.value
	}
	size := max(8, len(old.entries))
	if 2*(old.used+1) > size {
		size *= 2
	}
	table := &typeTable[V]{make([]typeEntry[V], size), old.used + 1}
	for _, e := range old.entries {
		if e.address != 0 {
			*table.find(e.address) = e
		}
	}
	*table.find(address(t)) = typeEntry[V]{address(t), t, value}
	m.table.Store(table)
	return value
}
