package convert

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
)

// Each line of an undo log ends with a checksum. It is the CRC-32C of the id of the log, the offset
// of the line in the file, and the line up to the checksum. It therefore detects a wrong bit, a
// moved line and a line of another log.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	sealBegin  = `,"crc":"`
	sealLength = len(sealBegin) + 8 + len(`"}`)
)

var errDamaged = errors.New("checksum mismatch: the line is damaged")

func checksum(line []byte, id string, offset int64) uint32 {
	b := binary.LittleEndian.AppendUint64([]byte(id), uint64(offset))
	return crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, line)
}

// seal adds the checksum to line, which is a JSON object without a newline.
func seal(line []byte, id string, offset int64) []byte {
	return appendSealed(make([]byte, 0, len(line)+sealLength), line, id, offset)
}

// appendSealed appends line, with the checksum added, to b.
func appendSealed(b, line []byte, id string, offset int64) []byte {
	line = line[:len(line)-1]
	b = append(append(b, line...), sealBegin...)
	b = hex.AppendEncode(b, binary.BigEndian.AppendUint32(nil, checksum(line, id, offset)))
	return append(b, `"}`...)
}

// sealed returns an error if the line, without its newline, does not have the correct checksum.
func sealed(line []byte, id string, offset int64) error {
	if len(line) < sealLength {
		return errDamaged
	}
	body := line[:len(line)-sealLength]
	if !bytes.Equal(seal(append(bytes.Clone(body), '}'), id, offset), line) {
		return errDamaged
	}
	return nil
}

// torn returns an error if tail, the bytes after the last newline, has a complete line. Its end was
// then damaged, and the changes on account of it would be overlooked. A process that is killed
// leaves only the beginning of a line.
func torn(tail []byte, id string, offset int64) error {
	for i := 0; ; {
		n := bytes.Index(tail[i:], []byte(sealBegin))
		if n < 0 {
			return nil
		}
		end := i + n + sealLength
		if end < len(tail) && sealed(tail[:end], id, offset) == nil {
			return errors.New("the end of the last line is damaged")
		}
		i += n + 1
	}
}
