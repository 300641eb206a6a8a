// Package serialtest gives tests the Maker of a Generator.
package serialtest

import "github.com/bsonids/bsonids/internal/serial"

// Maker calls make, which makes one Generator, and returns what this draws from. No other goroutine may make Generators
// meanwhile.
func Maker[M serial.Maker](make func()) (maker M) {
	newGenerator := serial.NewGenerator
	defer func() { serial.NewGenerator = newGenerator }()
	serial.NewGenerator = func(m *serial.Machine) any {
		maker = m.Maker().(M)
		return newGenerator(m)
	}
	make()
	return maker
}
