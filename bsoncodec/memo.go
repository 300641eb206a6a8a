package bsoncodec

import (
	"maps"
	"sync"
	"sync/atomic"
)

// onFirstUse keeps the first value that it is given.
type onFirstUse[V any] struct{ kept atomic.Pointer[V] }

// get returns the kept value. On the first call it keeps the result of choose. It is safe for concurrent
// use.
func (o *onFirstUse[V]) get(choose func() V) V {
	if v := o.kept.Load(); v != nil {
		return *v
	}
	v := choose()
	o.kept.CompareAndSwap(nil, &v)
	return *o.kept.Load()
}

// memo keeps what make returns for each key. Each new key copies the map, so there must be few.
type memo[K comparable, V any] struct {
	make func(K) V
	mu   sync.Mutex // held while a value is added
	kept atomic.Pointer[map[K]V]
}

// get returns the value for key. It is safe for concurrent use.
func (m *memo[K, V]) get(key K) V {
	if kept := m.kept.Load(); kept != nil {
		if v, ok := (*kept)[key]; ok {
			return v
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	extended := map[K]V{}
	if kept := m.kept.Load(); kept != nil {
		extended = maps.Clone(*kept)
	}
	v := m.make(key) // if another goroutine has stored one since, it is like this one
	extended[key] = v
	m.kept.Store(&extended)
	return v
}
