package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfiles writes profiles of the processor time and of all allocations to the files whose names are not empty, until
// stop is called.
func startProfiles(cpu, allocations string) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	if cpu != "" {
		f, err := os.Create(cpu)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		stops = append(stops, func() {
			pprof.StopCPUProfile()
			_ = f.Close()
		})
	}
	if allocations != "" {
		f, err := os.Create(allocations)
		if err != nil {
			return nil, err
		}
		runtime.MemProfileRate = 1
		stops = append(stops, func() {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			_ = f.Close()
		})
	}
	return stop, nil
}
