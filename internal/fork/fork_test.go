package fork

import (
	"sync"
	"testing"
)

func TestGenerationIsConstant(t *testing.T) {
	want := Generation()
	if want == 0 {
		t.Fatal("generation 0")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if got := Generation(); got != want {
					t.Errorf("Generation() = %d, want %d", got, want)
				}
				if got := Check(); got != want {
					t.Errorf("Check() = %d, want %d", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// A cleared word is what a fork finds. Every caller gets the same new generation, which was never in use.
func TestClearedWord(t *testing.T) {
	seen := map[uint64]bool{Generation(): true}
	for range 100 {
		word.Store(0)
		got := make([]uint64, 4)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = Generation() })
		}
		wg.Wait()
		for _, n := range got {
			if n != got[0] || seen[n] {
				t.Fatalf("generations %v", got)
			}
		}
		seen[got[0]] = true
	}
}

// Where the kernel clears nothing, another process id is what a fork finds.
func TestProcessID(t *testing.T) {
	UseProcessID(t)
	first := Check()
	pid.Add(1)
	if got := Generation(); got != first {
		t.Errorf("Generation() = %d before Check, want %d", got, first)
	}
	second := Check()
	if second == first || Generation() != second || Check() != second {
		t.Errorf("generation %d in another process, after %d", second, first)
	}
}

func BenchmarkGeneration(b *testing.B) {
	for b.Loop() {
		Generation()
	}
}
