package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// After a crash, SQLite reads the write-ahead log up to the first frame with a wrong
// checksum. It assumes that the rest is a transaction that was never finished. After a
// crash this is correct. But if the log was damaged, SQLite silently loses stored
// transactions. The code below distinguishes the two cases. The format is at
// https://www.sqlite.org/walformat.html.

const (
	logHeader   = 32 // bytes
	frameHeader = 24
	saltSize    = 8
)

// loss describes which part of a log cannot be read.
type loss struct {
	read   uint32 // number of frames that SQLite reads
	stored uint32 // number of frames that were stored, 0 if unknown
}

func (l *loss) Error() string {
	text := fmt.Sprintf("the write-ahead log is damaged after frame %d", l.read)
	if l.stored > 0 {
		text = fmt.Sprintf("the write-ahead log is damaged: only %d of its %d frames can be read", l.read, l.stored)
	}
	return text + ", and later transactions are lost"
}

// checkLog returns an error if SQLite would ignore stored transactions of the log. No
// process may have the store open.
func (s *Store) checkLog() error {
	lost, err := logLoss(s.path + "-wal")
	if err == nil && lost != nil { // check again, because another program may have been writing
		lost, err = logLoss(s.path + "-wal")
	}
	switch {
	case err != nil:
		return nil //nolint:nilerr // what cannot be read SQLite cannot read either, and says so
	case lost == nil:
		return nil
	}
	return &FileError{
		Path: s.path, Kind: ErrCorrupt, Err: lost,
		Remedy: "keep a copy of the file and of its -wal and -shm files; then restore a backup, or continue with the readable part: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'",
	}
}

// logLoss reads a log and returns what SQLite would lose, or nil.
func logLoss(name string) (*loss, error) {
	indexed, err := readIndex(name[:len(name)-len("-wal")] + "-shm")
	if err != nil {
		return nil, err
	}
	l, err := readLog(name)
	if err != nil {
		return nil, err
	}
	if indexed != nil && (l.salt == nil || bytes.Equal(indexed.salt, l.salt)) {
		// The index has the number of stored frames. If all of them were already copied to
		// the database, the log is not needed.
		if indexed.frames > l.stored && (l.stored > 0 || indexed.copied < indexed.frames) {
			return &loss{l.stored, indexed.frames}, nil
		}
		return nil, nil
	}
	// SQLite begins a transaction only after the previous one is on the disk. So if more
	// frames follow a broken transaction, that transaction was stored.
	if l.more || l.salt == nil && l.size > logHeader {
		return &loss{read: l.stored}, nil
	}
	return nil, nil
}

type logState struct {
	size   int64
	salt   []byte // nil if the header is missing or damaged
	stored uint32 // number of frames that SQLite reads
	more   bool   // a transaction follows one that cannot be read
}

// readLog reads a log as SQLite does after a crash. Then it looks for further transactions.
func readLog(name string) (*logState, error) {
	l := new(logState)
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was not written
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("the log: %w", err)
	}
	l.size = info.Size()
	in := bufio.NewReaderSize(file, 1<<20)
	head := make([]byte, logHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		return l, atEnd(err)
	}
	sum, page := checksum{order: binary.LittleEndian}, binary.BigEndian.Uint32(head[8:])
	switch binary.BigEndian.Uint32(head) {
	case 0x377f0682:
	case 0x377f0683:
		sum.order = binary.BigEndian
	default:
		return l, nil
	}
	sum.add(head[:24])
	if page < 512 || page > 1<<16 || page&(page-1) != 0 || !sum.is(head[24:]) {
		return l, nil
	}
	l.salt = head[16:24]
	frame := make([]byte, frameHeader+page)
	broken, ended := false, false
	for n := uint32(1); ; n++ {
		if _, err := io.ReadFull(in, frame); err != nil {
			return l, atEnd(err)
		}
		mine, commits := bytes.Equal(frame[8:16], l.salt), binary.BigEndian.Uint32(frame[4:]) != 0
		if !broken {
			sum.add(frame[:8])
			sum.add(frame[frameHeader:])
			broken = !mine || !sum.is(frame[16:]) || binary.BigEndian.Uint32(frame) == 0
		}
		switch {
		case !broken && commits:
			l.stored = n
		case broken && mine && ended:
			l.more = true
			return l, nil
		case broken && mine && commits:
			ended = true
		}
	}
}

// atEnd returns nil if err means the end of a file, and otherwise err.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// checksum is SQLite's checksum of log frames.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		c.s0 += c.order.Uint32(data) + c.s1
		c.s1 += c.order.Uint32(data[4:]) + c.s0
	}
}

// is reports whether the checksum equals a stored checksum.
func (c *checksum) is(stored []byte) bool {
	return binary.BigEndian.Uint32(stored) == c.s0 && binary.BigEndian.Uint32(stored[4:]) == c.s1
}

// logIndex is the header of a log's index file.
type logIndex struct {
	salt   []byte
	frames uint32 // number of stored frames
	copied uint32 // number of frames that were copied to the database
}

// readIndex reads the header of an index. It returns nil if the file is missing, or if the
// header is invalid: SQLite does not flush the index to the disk.
func readIndex(name string) (*logIndex, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was not written
	const size = 48                     // the header is in the file twice
	head := make([]byte, 2*size+4)
	if _, err := io.ReadFull(file, head); err != nil {
		return nil, atEnd(err)
	}
	order, sum := binary.NativeEndian, checksum{order: nativeOrder}
	sum.add(head[:40])
	if !bytes.Equal(head[:size], head[size:2*size]) || order.Uint32(head) != 3007000 || order.Uint32(head[40:]) != sum.s0 || order.Uint32(head[44:]) != sum.s1 {
		return nil, nil
	}
	return &logIndex{salt: head[32:40], frames: order.Uint32(head[16:]), copied: order.Uint32(head[96:])}, nil
}

// nativeOrder is the byte order of this machine.
var nativeOrder = func() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}()
