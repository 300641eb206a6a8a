//go:build race

package objectidgen

const raceEnabled = true
