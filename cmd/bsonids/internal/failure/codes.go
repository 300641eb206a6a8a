package failure

import "slices"

// lost holds the error codes of a server that is shutting down, is no longer the primary or timed
// out, and of a router that did not reach a server or reached the wrong one. The codes are those of
// src/mongo/base/error_codes.yml of MongoDB.
var lost = []int{
	6, 7, 50, 63, 70, 82, 83, 89, 91, 133, 150, 189, 202, 249, 262, 317, 384, 407, 9001, 10058, 10107, 11600, 11602, 13388, 13435, 13436, 91331,
}

// refuses holds further codes that do not concern a single document: missing privileges and expired
// credentials, killed operations, locks, conflicts and overload, a full disk, a quota, blocked
// writes.
var refuses = []int{13, 18, 24, 46, 112, 117, 237, 246, 279, 290, 355, 358, 363, 365, 371, 391, 402, 433, 449, 450, 453, 462, 8000, 11601, 14031, 46841, 10045600}

// Concerns reports whether a write error with the code concerns the server, as opposed to the
// single document that was written.
func Concerns(code int) bool { return slices.Contains(lost, code) || slices.Contains(refuses, code) }
