// Package order decides when the ids of a generator begin a new order.
//
// A generator whose ids are in the order of time reads a clock, which may stop, jump ahead and be set back, and may show
// a wrong time for a moment. Its ids form orders: within one order they strictly increase. R is the highest reading of
// the clock in the present order, and each reading is treated as follows:
//
//	R < reading            R becomes the reading, and ids have its timestamp or a later one
//	R-limit ≤ reading ≤ R  ids count up from the last timestamp
//	reading < R-limit      a new order begins at the reading: R is the reading, ids follow it, and what is random
//	                       in them is drawn again, so that none repeats
//
// A burst of ids, whose timestamps run ahead of the clock, does not change R: it never ends an order, however far it
// runs. So a reading that was far ahead has no lasting effect, a clock that is corrected by less than the limit costs
// nothing, and without a limit there is one order for ever.
//
// Orders are numbered, and a generator tells the number of the present one. A batch of ids lies in one order: if a new
// one interrupts it, the batch starts again.
package order

import "sync/atomic"

// An Order is the present order of a generator. Readings are numbers in the unit of the generator. It is safe for
// concurrent use.
type Order struct {
	number  uint64
	highest atomic.Uint64
}

// First returns the first order of a generator, before any reading.
func First() *Order { return &Order{number: 1} }

// Next returns the order after o, which begins at a reading.
func (o *Order) Next(reading uint64) *Order {
	next := &Order{number: o.number + 1}
	next.highest.Store(reading)
	return next
}

// Number returns the number of the order, counted from 1.
func (o *Order) Number() uint64 { return o.number }

// Highest returns R. A goroutine calls it before it asks the clock, so that a reading that waited on the way does not
// look like a clock that was set back.
func (o *Order) Highest() uint64 { return o.highest.Load() }

// Continues reports whether a reading belongs to the order, and raises R to it. The clock was asked after Highest had
// returned the given R.
func (o *Order) Continues(reading, highest, limit uint64) bool {
	if reading <= highest {
		return highest-reading <= limit
	}
	for r := o.highest.Load(); reading > r; r = o.highest.Load() {
		if o.highest.CompareAndSwap(r, reading) {
			break
		}
	}
	return true
}
