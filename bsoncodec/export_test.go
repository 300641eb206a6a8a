package bsoncodec

// The packages of driver version 1 are not in this module: testdata has some types that stand in for theirs. The tests of
// package integration meet the real ones.
func init() { v1Path = "github.com/bsonids/bsonids/bsoncodec/testdata/v1/" }
