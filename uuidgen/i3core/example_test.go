package i3core_test

import (
	"fmt"
	"time"

	"github.com/bsonids/bsonids/uuidgen/i3core"
	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

func ExampleDecodeInteraction() {
	f, err := i3core.DecodeInteraction(uuid.MustParse("00000000-0000-c000-8000-001234567890"))
	if err != nil {
		panic(err)
	}
	fmt.Println(f.Number, f.Resolved())

	_, err = i3core.DecodeInteraction(uuid.MustParse("00000000-0000-c000-8000-0012345678f0"))
	fmt.Println(err)
	// Output:
	// 1234567890 false
	// i3core: legacy interaction id format: field digit1 is 0xf: want 0 to 9
}

// The bytes of a csharpLegacy value in MongoDB are the memory of i3core.
func Example_memory() {
	u := uuid.MustParse("86c26000-3e07-eab2-9234-0242ac120002")
	m := uuidrep.CSharpLegacy.Permute(u)
	fmt.Printf("%x\n", m)
	fmt.Println(uuidrep.CSharpLegacy.Permute(m) == u)
	// Output:
	// 0060c286073eb2ea92340242ac120002
	// true
}

func ExampleDecodeNotifier() {
	f, err := i3core.DecodeNotifier(uuid.MustParse("86c26000-3e07-eab2-9234-0242ac120002"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v custom %#x connection %#x node %x\n", f.Time(), f.Custom, f.ConnectionID, f.NodeAddress)
	// Output: 2020-01-01 00:00:00 +0000 UTC custom 0xab connection 0x1234 node 0242ac120002
}

// The application's kind of object goes into the custom byte.
func ExampleNewRandomGenerator() {
	const invoice = 0x2A
	g, err := i3core.NewRandomGenerator(i3core.WithCustom(invoice))
	if err != nil {
		panic(err)
	}
	u, err := g.NewUUID()
	if err != nil {
		panic(err)
	}
	f, err := i3core.DecodeRandom(u)
	if err != nil {
		panic(err)
	}
	fmt.Println(u.Version(), f.Custom == invoice)
	// Output: VERSION_4 true
}

// The document does not give the version of sequential UUIDs: readers must know the one that the maker chose.
func ExampleNewSequentialGenerator() {
	const version = 0xD
	now := time.Date(2020, 1, 1, 0, 0, 0, 123456789, time.UTC)
	g, err := i3core.NewSequentialGenerator(
		i3core.WithVersion(version),
		uuidgen.WithClock(func() time.Time { return now })) // time.Now by default
	if err != nil {
		panic(err)
	}
	a, err := g.NewUUID()
	if err != nil {
		panic(err)
	}
	b, err := g.NewUUID()
	if err != nil {
		panic(err)
	}
	f, err := i3core.DecodeSequential(a, version)
	if err != nil {
		panic(err)
	}
	ma, mb := uuidrep.CSharpLegacy.Permute(a), uuidrep.CSharpLegacy.Permute(b)
	fmt.Println(f.Time(), string(ma[:]) < string(mb[:]))
	// Output: 2020-01-01 00:00:00.123456 +0000 UTC true
}

func ExampleNewNameBased() {
	u, err := i3core.NewNameBased(uuid.NameSpaceDNS, []byte("www.example.com"))
	if err != nil {
		panic(err)
	}
	fmt.Println(u)
	// Output: 5df41881-3aed-3515-88a7-2f4a814cf09e
}
