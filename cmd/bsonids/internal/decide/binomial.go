package decide

import "math"

// atLeast returns the probability that a binomial variable of n trials, each with probability p, is
// k or more. It sums the terms of the shorter tail, starting with the largest one, so that small
// results keep their relative precision.
func atLeast(k, n int64, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n:
		return 0
	case float64(k) <= float64(n)*p:
		return max(0, 1-tail(n-k+1, n, 1-p))
	}
	return tail(k, n, p)
}

// tail returns the same as atLeast, for k above the mean.
func tail(k, n int64, p float64) float64 {
	if k > n {
		return 0
	}
	odds := p / (1 - p)
	term := math.Exp(logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	sum := 0.0
	for i := k; i <= n && term > sum*1e-17; i++ {
		sum += term
		term *= float64(n-i) / float64(i+1) * odds
	}
	return min(sum, 1)
}

func logChoose(n, k int64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
