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

// The history keeps the newest historyEntries entries, each at most historyBytes long.
// The file may have twice as many entries before readHistory shortens it.
const (
	historyEntries = 1000
	historyBytes   = 64 << 10
)

// history holds the entries, the oldest first, and the position in them.
type history struct {
	entries []string
	at      int    // the position; len(entries) means the current input
	draft   string // the current input, saved while the user looks at older entries
}

func newHistory(entries []string) history { return history{entries: entries, at: len(entries)} }

// add adds an entry. It reports whether to write the entry to the file.
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

// older returns the entry before the current one.
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

// newer returns the entry after the current one. After the last entry it returns the draft.
func (h *history) newer() (string, bool) {
	if h.at == len(h.entries) {
		return "", false
	}
	if h.at++; h.at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.at], true
}

// readHistory reads the newest entries of a history file. Each line is a JSON string. It
// skips invalid lines, and treats a missing file as empty. It removes the oldest entries
// from a file that is too long.
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

// writeHistory replaces the file atomically.
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

// appendHistory adds an entry to a history file. If it creates the file, only the owner can
// read it.
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

// writeEntry writes an entry with one call, so that the entries of two running chats do not
// mix.
func writeEntry(w io.Writer, text string) error {
	data, err := json.Marshal(text)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err //nolint:wrapcheck // the callers add context
}
