// Package strict refuses commands as MongoDB does before it carries them out. Servers of tests that take more use
// it: a field that the driver adds to a command that has it already would not be noticed there.
package strict

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// The codes of src/mongo/idl/idl_parser.cpp of MongoDB.
const (
	duplicateField = 40413
	unknownField   = 40415
)

// Refusal is why a command is refused.
type Refusal struct {
	Code     int32
	CodeName string
	Text     string
}

// Reply returns the answer of the server.
func (r *Refusal) Reply() bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: r.Text}, {Key: "code", Value: r.Code}, {Key: "codeName", Value: r.CodeName}}
}

// Check returns why MongoDB refuses a command, or nil: a field at the top level is there twice, or the command does not have it.
// sequences are the names of the sequences of documents in the message. Of a command whose fields are not in the
// table, only fields that are there twice are refused.
func Check(command bson.Raw, sequences ...string) *Refusal {
	elements, err := command.Elements()
	if err != nil || len(elements) == 0 {
		return nil
	}
	var fields []string
	for _, e := range elements {
		fields = append(fields, e.Key())
	}
	fields = append(fields, sequences...)
	name := fields[0]
	known, checked := commands[name]
	for i, field := range fields {
		if slices.Contains(fields[:i], field) {
			return &Refusal{duplicateField, "Location40413", fmt.Sprintf("BSON field 'OperationSessionInfo.%s' is a duplicate field", field)}
		}
		if i > 0 && checked && !slices.Contains(known, field) && !slices.Contains(generic, field) {
			return &Refusal{unknownField, "Location40415", fmt.Sprintf("BSON field '%s.%s' is an unknown field.", name, field)}
		}
	}
	return nil
}

// generic are the fields that a client may send with every command, as in src/mongo/idl/generic_argument.idl, with rawData of
// MongoDB 8.2.
var generic = strings.Fields(`apiDeprecationErrors apiStrict apiVersion autocommit comment lsid maxTimeMS rawData readConcern startTransaction
	txnNumber writeConcern $clusterTime $db $queryOptions $readPreference`)

// commands has the fields of commands, as in the .idl files of MongoDB 8.0, without those that only servers send to each other.
var commands = map[string][]string{
	"abortTransaction":  strings.Fields("recoveryToken"),
	"aggregate":         strings.Fields("allowDiskUse bypassDocumentValidation collation cursor encryptionInformation explain hint let pipeline"),
	"collMod":           strings.Fields("cappedMax cappedSize changeStreamPreAndPostImages dryRun expireAfterSeconds index pipeline timeseries validationAction validationLevel validator viewOn"),
	"commitTransaction": strings.Fields("recoveryToken"),
	"count":             strings.Fields("collation encryptionInformation fields hint limit query skip"),
	"create": strings.Fields(`autoIndexId capped changeStreamPreAndPostImages clusteredIndex collation encryptedFields expireAfterSeconds
		flags idIndex indexOptionDefaults max pipeline size storageEngine temp timeseries validationAction validationLevel validator viewOn`),
	"createIndexes": strings.Fields("commitQuorum ignoreUnknownIndexOptions indexes"),
	"delete":        strings.Fields("deletes encryptionInformation let ordered stmtId stmtIds"),
	"distinct":      strings.Fields("collation hint key query"),
	"drop":          nil,
	"dropIndexes":   strings.Fields("index"),
	"endSessions":   nil,
	"find": strings.Fields(`allowDiskUse allowPartialResults awaitData batchSize collation encryptionInformation filter hint let limit max min
		noCursorTimeout oplogReplay projection returnKey showRecordId singleBatch skip sort tailable`),
	"findAndModify":    strings.Fields("arrayFilters bypassDocumentValidation bypassEmptyTsReplacement collation encryptionInformation fields hint let new query remove sort stmtId update upsert"),
	"getMore":          strings.Fields("batchSize collection"),
	"insert":           strings.Fields("bypassDocumentValidation bypassEmptyTsReplacement documents encryptionInformation ordered stmtId stmtIds"),
	"killCursors":      strings.Fields("cursors"),
	"listCollections":  strings.Fields("authorizedCollections cursor filter nameOnly"),
	"listDatabases":    strings.Fields("authorizedDatabases filter nameOnly"),
	"listIndexes":      strings.Fields("cursor"),
	"renameCollection": strings.Fields("dropTarget stayTemp to"),
	"update":           strings.Fields("bypassDocumentValidation bypassEmptyTsReplacement encryptionInformation let ordered stmtId stmtIds updates"),
}

// Message returns the answer with which MongoDB refuses the message of a client, header included, or nil. An
// unacknowledged message that is refused has an answer, too; the server does not send it.
func Message(message []byte) []byte {
	_, id, _, opcode, rest, ok := wiremessage.ReadHeader(message)
	if !ok || opcode != wiremessage.OpMsg {
		return nil
	}
	_, rest, ok = wiremessage.ReadMsgFlags(rest)
	var command bson.Raw
	var sequences []string
	for ok && len(rest) > 4 { // a checksum may follow
		var kind wiremessage.SectionType
		if kind, rest, ok = wiremessage.ReadMsgSectionType(rest); !ok {
			return nil
		}
		switch kind {
		case wiremessage.SingleDocument:
			var doc bsoncore.Document
			doc, rest, ok = wiremessage.ReadMsgSectionSingleDocument(rest)
			command = bson.Raw(doc)
		case wiremessage.DocumentSequence:
			var name string
			name, _, rest, ok = wiremessage.ReadMsgSectionDocumentSequence(rest)
			sequences = append(sequences, name)
		default:
			return nil
		}
	}
	if !ok {
		return nil
	}
	r := Check(command, sequences...)
	if r == nil {
		return nil
	}
	body, err := bson.Marshal(r.Reply())
	if err != nil {
		panic(err)
	}
	start, b := wiremessage.AppendHeaderStart(nil, 0, id, wiremessage.OpMsg)
	b = wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(b, 0), wiremessage.SingleDocument)
	b = append(b, body...)
	return bsoncore.UpdateLength(b, start, int32(len(b)))
}
