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

// After a crash SQLite reads the log up to the first frame whose checksum is wrong, and
// takes the rest for a transaction that was never finished. That is right for a crash.
// But if the log was damaged, stored transactions are silently lost. The code below
// distinguishes the two cases. https://www.sqlite.org/walformat.html has the format.

const (
	logHeader   = 32 // bytes
	frameHeader = 24
	saltSize    = 8
)

// loss describes how much of a log cannot be read.
type loss struct {
	read   uint32 // frames that SQLite reads
	stored uint32 // frames that were stored, if the index knows; else 0
}

func (l *loss) Error() string {
	text := fmt.Sprintf("the log is damaged after frame %d", l.read)
	if l.stored > 0 {
		text = fmt.Sprintf("the log is damaged: %d of its %d frames can be read", l.read, l.stored)
	}
	return text + ", and transactions after it are lost"
}

// checkLog returns an error if SQLite would skip stored transactions of the log. No
// process must have the store open. It reads the log as SQLite does, and is faster.
func (s *Store) checkLog() error {
	lost, err := logLoss(s.path + "-wal")
	if err == nil && lost != nil { // unless another program is writing at the moment
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
		Remedy: "keep a copy of it with its -wal and -shm, then restore a backup, or continue with the readable part: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'",
	}
}

// logLoss reads a log and reports which frames SQLite would skip.
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
		// The index counts the stored frames. If it says that all of them are in the
		// database, the log is not needed.
		if indexed.frames > l.stored && (l.stored > 0 || indexed.copied < indexed.frames) {
			return &loss{l.stored, indexed.frames}, nil
		}
		return nil, nil
	}
	// A transaction is on the disk before the next one starts: if there is more after
	// the first broken one, that one was stored.
	if l.more || l.salt == nil && l.size > logHeader {
		return &loss{read: l.stored}, nil
	}
	return nil, nil
}

// logState is the content of a log.
type logState struct {
	size   int64
	salt   []byte // nil if the header is damaged, or missing
	stored uint32 // frames that SQLite reads
	more   bool   // frames follow an unreadable transaction
}

// readLog reads a log as SQLite does after a crash, and checks the rest.
func readLog(name string) (*logState, error) {
	l := new(logState)
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
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

// atEnd returns nil if the error is the end of a file.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// checksum is SQLite's checksum of the log.
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

// is reports whether it equals the stored checksum.
func (c *checksum) is(stored []byte) bool {
	return binary.BigEndian.Uint32(stored) == c.s0 && binary.BigEndian.Uint32(stored[4:]) == c.s1
}

// logIndex is the header of a log's index.
type logIndex struct {
	salt   []byte
	frames uint32 // frames of stored transactions
	copied uint32 // frames already copied to the database
}

// readIndex reads the beginning of an index. It returns nil if there is none, or if it
// cannot be trusted: it is not flushed to the disk.
func readIndex(name string) (*logIndex, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	const size = 48                     // the header is stored twice
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
