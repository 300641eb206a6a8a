//go:build go1.27

package uuidgen_test

import (
	"testing"
	"time"
	stduuid "uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// The standard library's type is taken as it is, and an id becomes one by a conversion.
func TestStandardLibraryUUID(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	u := stduuid.NewV7()
	at, err := uuidgen.Time(u)
	if err != nil || at.Before(before) || at.After(time.Now().Add(time.Millisecond)) {
		t.Errorf("%v: %v, %v", u, at, err)
	}
	if c, err := uuidgen.CompareTime(u, before.Add(-time.Hour)); err != nil || c != 1 {
		t.Errorf("%v: %d, %v", u, c, err)
	}
	id, err := uuidgen.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	if std := stduuid.UUID(id); std.String() != id.String() {
		t.Errorf("%v is %v", std, id)
	}
	g, err := uuidgen.NewV8Generator(uuidrep.CSharpLegacy)
	if err != nil {
		t.Fatal(err)
	}
	if id, err = g.NewUUID(); err != nil {
		t.Fatal(err)
	}
	if at, err := uuidgen.TimeV8(stduuid.UUID(id), uuidrep.CSharpLegacy); err != nil || at.Before(before) {
		t.Errorf("%v: %v, %v", id, at, err)
	}
}
