package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belay-run/belay/internal/wholefile"
)

// The history keeps so many entries, none longer than that. Its file may hold
// twice as many before it is shortened.
const (
	historyEntries = 1000
	historyBytes   = 64 << 10
)

// history is what was typed, oldest first, and the place in it that the person
// looks at.
type history struct {
	entries []string
	at      int    // len(entries): what is being typed
	draft   string // what was being typed when they went back
}

func newHistory(entries []string) history { return history{entries: entries, at: len(entries)} }

// add takes an entry, and reports whether it is worth keeping in a file.
func (h *history) add(text string) bool {
	fresh := len(h.entries) == 0 || h.entries[len(h.entries)-1] != text
	if fresh {
		h.entries = append(h.entries, text)
		if len(h.entries) > historyEntries {
			h.entries = h.entries[len(h.entries)-historyEntries:]
		}
	}
	h.at, h.draft = len(h.entries), ""
	return fresh && len(text) <= historyBytes
}

// older goes back by one.
func (h *history) older(typed string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = typed
	}
	h.at--
	return h.entries[h.at], true
}

// newer goes forward by one, and at last to what was being typed.
func (h *history) newer() (string, bool) {
	if h.at == len(h.entries) {
		return "", false
	}
	if h.at++; h.at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.at], true
}

// readHistory reads the newest entries of a history file: a JSON string in each
// line. A line that is none is passed over, and a file that is not there is empty.
func readHistory(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var entries []string
	for line := range bytes.Lines(data) {
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" {
			entries = append(entries, text)
		}
	}
	if len(entries) > 2*historyEntries {
		if err := writeHistory(path, entries[len(entries)-historyEntries:]); err != nil {
			return nil, err
		}
	}
	return entries[max(len(entries)-historyEntries, 0):], nil
}

// writeHistory puts a shorter history in the place of the file, whole or not at
// all.
func writeHistory(path string, entries []string) error {
	var text bytes.Buffer
	for _, entry := range entries {
		if err := writeEntry(&text, entry); err != nil {
			return err
		}
	}
	if err := wholefile.Write(path, text.Bytes()); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// appendHistory adds an entry to a history file. What people type is theirs: the
// file is for nobody else to read.
func appendHistory(path, text string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if err := errors.Join(writeEntry(file, text), file.Close()); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// writeEntry writes an entry in one piece, so that two chats do not mix theirs.
func writeEntry(w io.Writer, text string) error {
	data, err := json.Marshal(text)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err //nolint:wrapcheck // the callers say what it is about
}
