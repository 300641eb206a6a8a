//go:build race

package uuidgen

const raceEnabled = true
