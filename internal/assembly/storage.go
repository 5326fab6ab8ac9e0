package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/store/sqlite"
)

// OpenStore opens the store: a file or a database. It creates the file if there is none.
// It reports what it recovered after a process ended without closing the store.
func (a *Assembler) OpenStore(ctx context.Context, settings *config.Loaded) (Store, error) { //nolint:ireturn // which one it is, the settings say
	if config.IsDSN(settings.Store) {
		return a.OpenDatabase(ctx, settings, nil)
	}
	if err := CheckStore(settings); err != nil {
		return nil, err
	}
	if err := StoreDir(settings); err != nil {
		return nil, unwritable(settings, err)
	}
	store, err := sqlite.Open(ctx, settings.Store, &sqlite.Options{Logger: a.logger()})
	if err != nil {
		return nil, unwritable(settings, err)
	}
	if from, to := store.Migrated(); 0 < from && from < to {
		a.caution(fmt.Sprintf("the store was migrated from version %d to %d: an older Belay can open its copy %s.v%d.bak, which keeps conversations until you delete it", from, to, store.Path(), from))
	}
	if line := recovered(store.Recovery()); line != "" {
		a.caution(line)
	}
	return store, nil
}

// unwritable adds a hint to the error for a store file that cannot be written.
func unwritable(settings *config.Loaded, err error) error {
	if !errors.Is(err, sqlite.ErrReadOnly) && !ReadOnlyPlace(err) {
		return err
	}
	hint := "keep sessions elsewhere: --store FILE, in a directory that you may write to"
	if _, missing := os.Stat(settings.Store); missing == nil {
		hint = "to read the store, Belay must write files beside it: copy " + settings.Store + " (with its -wal, if there is one) to a directory that you may write to, and name the copy with --store FILE"
	}
	return &Error{Err: err, Hint: hint, Mistake: IsMistake(err)}
}

// ReadOnlyPlace reports whether an error means that a file or directory cannot be written.
func ReadOnlyPlace(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// schemed and worded match names of stores that are not files: a URL with another scheme,
// and connection settings for libpq. The name was made an absolute path before, so double
// slashes are single.
var (
	schemed = lazyregexp.New(`(?:^|[\\/])([A-Za-z][A-Za-z0-9+.-]+):[\\/]`)
	worded  = lazyregexp.New(`(?i)(?:^|[\\/\s'])(?:host|hostaddr|port|dbname|user|password|service)\s*=`)
)

// CheckStore returns an error if the name of the store looks like a database that Belay
// does not support. The error does not repeat the name, because the name can contain a
// password.
func CheckStore(settings *config.Loaded) error {
	if _, err := os.Stat(settings.Store); err == nil || config.IsDSN(settings.Store) {
		return nil
	}
	const how = "name a file, or a database by its URL: postgres://user@host:5432/database"
	if found := schemed.FindStringSubmatch(settings.Store); found != nil {
		return mistake("%s: there is no store of kind %s: %s", settings.From("store"), found[1], how)
	}
	if worded.MatchString(settings.Store) {
		return mistake("%s: the value looks like connection settings of a database, not a file: %s", settings.From("store"), how)
	}
	return nil
}

// StoreDir creates the project's directory .belay for the store. It does not create other
// directories, because a path that does not exist is probably a mistake.
func StoreDir(settings *config.Loaded) error {
	if dir := filepath.Dir(settings.Store); dir == filepath.Join(settings.Project, ".belay") {
		return MakeHome(dir)
	}
	return MissingStoreDir(settings)
}

// MissingStoreDir returns an error if the directory of the store does not exist and Belay
// would not create it.
func MissingStoreDir(settings *config.Loaded) error {
	dir := filepath.Dir(settings.Store)
	if config.IsDSN(settings.Store) || dir == filepath.Join(settings.Project, ".belay") {
		return nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return mistake("%s: there is no directory %s for the store: create it first", settings.From("store"), dir)
	}
	return nil // opening the store reports other problems
}

// KeptOut is the .gitignore of the directory .belay. It keeps conversations out of version
// control, but not the files that a team shares.
const KeptOut = "/*\n!/.gitignore\n!/agents/\n!/skills/\n!/hooks/\n/hooks/**/*.jsonl\n!/tests/\n!/mcp.json\n!/mcp/\n"

// MakeHome creates the directory of a store. It also writes a .gitignore there, if there is
// none.
func MakeHome(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the directory for the store: %w", err)
	}
	ignore, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil //nolint:nilerr // it is there, or what is wrong with the directory shows when the store is opened
	}
	_, err = ignore.WriteString(KeptOut)
	if err = errors.Join(err, ignore.Close()); err != nil {
		return fmt.Errorf("create the directory for the store: %w", err)
	}
	return nil
}

// copyName matches what package store/sqlite appends to the name of a store when it copies the store before a migration.
var copyName = lazyregexp.New(`^\.v\d+\.bak(\.part)?$`)

// StoreCopies returns the copies of a store's earlier versions beside it.
func StoreCopies(file string) []string {
	entries, _ := os.ReadDir(filepath.Dir(file)) // what cannot be listed has no copies that this program made
	var found []string
	for _, e := range entries {
		if end, ok := strings.CutPrefix(e.Name(), filepath.Base(file)); ok && copyName.MatchString(end) {
			found = append(found, filepath.Join(filepath.Dir(file), e.Name()))
		}
	}
	return found
}

// recovered returns one line about what was recovered, or "".
func recovered(r sqlite.Recovery) string {
	var parts []string
	if len(r.Sessions) > 0 {
		parts = append(parts, visible.Counted(len(r.Sessions), "session")+" released")
	}
	if len(r.Runs) > 0 {
		parts = append(parts, visible.Counted(len(r.Runs), "record")+" marked interrupted")
	}
	if len(parts) == 0 {
		return ""
	}
	line := "recovered from a process that ended unexpectedly: " + strings.Join(parts, ", ")
	if len(r.Open) > 0 {
		line += "; a turn was running in " + strings.Join(r.Open, ", ") + ": belay resume " + r.Open[0]
	}
	return line
}
