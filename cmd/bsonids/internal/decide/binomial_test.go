package decide

import (
	"math"
	"math/big"
	"testing"
)

// exact sums the terms of the binomial distribution as fractions.
func exact(k, n int64, p *big.Rat) float64 {
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	power := func(r *big.Rat, e int64) *big.Rat {
		num := new(big.Int).Exp(r.Num(), big.NewInt(e), nil)
		return new(big.Rat).SetFrac(num, new(big.Int).Exp(r.Denom(), big.NewInt(e), nil))
	}
	sum := new(big.Rat)
	for i := k; i <= n; i++ {
		term := new(big.Rat).SetInt(new(big.Int).Binomial(n, i))
		term.Mul(term, power(p, i))
		sum.Add(sum, term.Mul(term, power(q, n-i)))
	}
	f, _ := sum.Float64()
	return f
}

func TestAtLeastIsExact(t *testing.T) {
	for _, p := range []int64{2, 8, 16, 64} {
		for _, n := range []int64{1, 2, 3, 5, 8, 20, 64, 200} {
			for k := range n + 2 {
				got, want := atLeast(k, n, 1/float64(p)), exact(k, n, big.NewRat(1, p))
				if math.Abs(got-want) > 1e-10*want+1e-14*float64(boolInt(float64(k) <= float64(n)/float64(p))) {
					t.Fatalf("P(X >= %d | %d, 1/%d) = %g, want %g", k, n, p, got, want)
				}
			}
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The expected values are those of the complementary error function, which approximates the
// binomial distribution for large n.
func TestAtLeastOfManyTrials(t *testing.T) {
	const n = 100_000_000
	for _, p := range []float64{1.0 / 64, 1.0 / 8} {
		deviation := math.Sqrt(n * p * (1 - p))
		for _, z := range []float64{-3, 0, 1, 4, 6} {
			k := int64(math.Ceil(n*p + z*deviation))
			want := math.Erfc((float64(k)-0.5-n*p)/deviation/math.Sqrt2) / 2
			if got := atLeast(k, n, p); math.Abs(got-want) > 0.04*want {
				t.Errorf("p = %g, z = %g: %g, want about %g", p, z, got, want)
			}
		}
	}
	if got := atLeast(n, n, 1.0/64); got != 0 {
		t.Errorf("all of them: %g", got)
	}
}
