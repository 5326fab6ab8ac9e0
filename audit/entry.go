package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
)

// The body of an entry is a list of lines, separated by spaces:
//
//	r12=HASH       the row of runs at position 12 has this hash
//	aKEY=HASH      the row of an approval; KEY is a hash of its id
//	wKEY=HASH      the texts of an approval
//	gKEY=HASH      the grants of a session; KEY is a hash of the session's id
//	R12=HASH       the same as r12, aKEY and wKEY, for a record that has ended and for an
//	AKEY=HASH      approval that is decided: such a row never changes again
//	WKEY=HASH
//	<r12=HASH      the row had this hash when the transaction of the entry read it, to change
//	               only a part of it. The same for <aKEY, <wKEY and <gKEY. A hash that is not
//	               that of the last line about the row shows a change between the two entries.
//	-r12 -aKEY     the row was removed with its session
//	-sKEY          the session was removed, with its grants
//	cLANE:IDX=HASH the hash of an entry of another lane
//
// A row can have lines in several entries. The last one counts.

// Entry is an entry of the chain.
type Entry struct {
	// Seq is the number of the entry. Numbers grow, and some are missing.
	Seq int64 `json:"seq"`
	// Lane is the chain of one writer, or "" for the main chain. Idx is the place in it,
	// counted from 1.
	Lane string `json:"lane,omitempty"`
	Idx  int64  `json:"idx"`
	// Time is in nanoseconds since 1970.
	Time int64  `json:"time"`
	Body string `json:"body"`
	// Hash is the hash of the entry and of the entry before it in the lane.
	Hash string `json:"hash"`
}

// HashOf returns the hash of an entry. before is the hash of the entry before it in the
// lane, or "" for the first one.
func HashOf(before string, e *Entry) string {
	var buf []byte
	for _, field := range [...]string{before, strconv.FormatInt(e.Seq, 10), e.Lane, strconv.FormatInt(e.Idx, 10), strconv.FormatInt(e.Time, 10), e.Body} {
		buf = appendField(buf, field)
	}
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:])
}

// appendField appends a field to what is hashed: its length in bytes, a colon and the field.
// So different fields never have the same text.
func appendField(to []byte, field string) []byte {
	to = append(strconv.AppendInt(to, int64(len(field)), 10), ':')
	return append(to, field...)
}

// RowHash returns the hash of a row with these columns.
func RowHash(columns ...string) string {
	var room [1024]byte
	buf := room[:0]
	for _, column := range columns {
		buf = appendField(buf, column)
	}
	sum := sha256.Sum256(buf)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// KeyLength is the length of a key before it is encoded. A multiple of three needs no padding.
const KeyLength = 12

// Key returns the key of an approval or of a session. It does not show the id.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.StdEncoding.EncodeToString(sum[:KeyLength])
}

// AppendHook appends what the name of a list of hooks depends on. ListName returns the name.
func AppendHook(to []byte, subscription, version, originName, originFile string, originLine int64) []byte {
	for _, part := range [...]string{subscription, version, originName, originFile} {
		to = append(binary.AppendUvarint(to, uint64(len(part))), part...)
	}
	return binary.AppendVarint(to, originLine)
}

// ListName returns the name of a list of hooks, whose hooks were written to the hash.
func ListName(list hash.Hash) string { return base64.RawURLEncoding.EncodeToString(list.Sum(nil)[:16]) }
