// Package bench compares bsonids with the alternatives, side by side in one run.
package bench
