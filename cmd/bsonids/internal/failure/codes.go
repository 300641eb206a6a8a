package failure

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Meaning is what an error code of a server means to this program. A code may have several.
type Meaning uint

// The meanings.
const (
	// Lost is a server that shuts down, is no longer the primary or timed out, and a router that did not
	// reach a server or reached the wrong one.
	Lost Meaning = 1 << iota
	// Busy is a server that is overloaded, or that gave up an operation which may succeed later.
	Busy
	// Refused is about the server and not about a document: missing privileges and expired credentials,
	// killed operations, locks, conflicts and overload, a full disk, a quota, blocked writes.
	Refused
	// Expired is a command that the server ended at its time limit.
	Expired
	// Locked is a command that gave up waiting for a lock.
	Locked
	// Unauthenticated is a user with wrong credentials, and Unauthorized one without a privilege.
	Unauthenticated
	Unauthorized
	// Unknown is a server that lacks a command, and NoStream one that has no change streams.
	Unknown
	NoStream
	// Forgotten is a change stream that cannot be resumed, because the oplog no longer has what follows.
	Forgotten
	// Exists and Missing are about the name of a collection.
	Exists
	Missing
	// Moved is a path that no longer leads to a value, and Invalid a document that the validator of the
	// collection rejects.
	Moved
	Invalid
	// BadValue is an argument that the server does not take.
	BadValue
	// Atlas is an error of the service Atlas, of which only the message says what it is about.
	Atlas
)

// codes has the codes of src/mongo/base/error_codes.yml of MongoDB, and some of other servers.
var codes = map[int]Meaning{
	2:        BadValue,
	6:        Lost,                      // HostUnreachable
	7:        Lost,                      // HostNotFound
	9:        NoStream,                  // FailedToParse: an aggregation without a collection, on FerretDB 1
	11:       Unauthenticated,           // UserNotFound
	13:       Refused | Unauthorized,    // Unauthorized
	18:       Refused | Unauthenticated, // AuthenticationFailed
	20:       NoStream,                  // IllegalOperation
	24:       Refused | Busy | Locked,   // LockTimeout
	26:       Missing,                   // NamespaceNotFound
	28:       Moved,                     // PathNotViable
	43:       Busy,                      // CursorNotFound
	46:       Refused,                   // LockBusy
	48:       Exists,                    // NamespaceExists
	50:       Lost | Expired,            // MaxTimeMSExpired
	59:       Unknown | NoStream,        // CommandNotFound
	63:       Lost,                      // StaleShardVersion
	70:       Lost,                      // ShardNotFound
	82:       Lost,                      // NoProgressMade
	83:       Lost,                      // RemoteResultsUnavailable
	89:       Lost,                      // NetworkTimeout
	91:       Lost,                      // ShutdownInProgress
	112:      Refused | Busy,            // WriteConflict
	115:      Unknown | NoStream,        // CommandNotSupported
	117:      Refused,                   // ConflictingOperationInProgress
	121:      Invalid,                   // DocumentValidationFailure
	133:      Lost,                      // FailedToSatisfyReadPreference
	136:      Forgotten,                 // CappedPositionLost
	150:      Lost,                      // StaleEpoch
	175:      Busy,                      // QueryPlanKilled
	189:      Lost,                      // PrimarySteppedDown
	202:      Lost,                      // NetworkInterfaceExceededTimeLimit
	237:      Refused | Busy,            // CursorKilled
	238:      Unknown | NoStream,        // NotImplemented
	246:      Refused | Busy,            // SnapshotUnavailable
	249:      Lost,                      // StaleChunkHistory
	260:      Forgotten,                 // InvalidResumeToken
	262:      Lost,                      // ExceededTimeLimit
	279:      Refused,                   // ClientDisconnect
	280:      Forgotten,                 // ChangeStreamFatalError
	286:      Forgotten,                 // ChangeStreamHistoryLost
	290:      Refused,                   // TransactionExceededLifetimeLimitSeconds
	317:      Lost,                      // ConnectionPoolExpired
	355:      Refused,
	358:      Refused,
	363:      Refused,
	365:      Refused | Busy, // TemporarilyUnavailable
	371:      Refused,        // UserWritesBlocked
	384:      Lost,           // ConnectionError
	391:      Refused,        // ReauthenticationRequired
	402:      Refused,        // ResourceExhausted
	407:      Lost,
	433:      Refused,
	449:      Refused,
	450:      Refused,
	453:      Refused,
	462:      Refused | Busy,  // IngressRequestRateLimitExceeded
	8000:     Refused | Atlas, // AtlasError
	9001:     Lost,            // SocketException
	10058:    Lost,            // LegacyNotPrimary
	10107:    Lost,            // NotWritablePrimary
	11600:    Lost,            // InterruptedAtShutdown
	11601:    Refused | Busy,  // Interrupted
	11602:    Lost,            // InterruptedDueToReplStateChange
	13388:    Lost,            // StaleConfig
	13435:    Lost,            // NotPrimaryNoSecondaryOk
	13436:    Lost,            // NotPrimaryOrSecondary
	14031:    Refused,         // OutOfDiskSpace
	40324:    NoStream,        // an unknown stage
	40573:    NoStream,        // a server that is not in a replica set
	46841:    Refused,         // ClientMarkedKilled
	91331:    Lost,
	10045600: Refused,
}

// Means reports whether err is of a server, and has a code with one of the meanings.
func Means(err error, m Meaning) bool {
	var se mongo.ServerError
	if !errors.As(err, &se) {
		return false
	}
	for code, meaning := range codes {
		if meaning&m != 0 && se.HasErrorCode(code) {
			return true
		}
	}
	return false
}

// Concerns reports whether a write error with the code concerns the server, as opposed to the
// single document that was written.
func Concerns(code int) bool { return codes[code]&(Lost|Refused) != 0 }
