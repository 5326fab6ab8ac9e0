package serve

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/wholefile"
)

// Role says what a token may do.
type Role string

// The roles. Run and approve include read. Admin includes all others.
const (
	RoleRead    Role = "read"    // read sessions, events, approvals, hooks and usage
	RoleRun     Role = "run"     // create sessions, start and abort turns
	RoleApprove Role = "approve" // decide approvals and answer questions
	RoleAdmin   Role = "admin"   // everything, including deleting sessions
)

// Roles returns all roles.
func Roles() []Role { return []Role{RoleRead, RoleRun, RoleApprove, RoleAdmin} }

// Token is a token without its secret.
type Token struct {
	Name  string `json:"name"`
	Roles []Role `json:"roles"`
	// Labels limit the token to sessions that have all of these labels. Defaults to all
	// sessions.
	Labels  map[string]string `json:"labels,omitempty"`
	Created time.Time         `json:"created"`
	// Hash is the SHA-256 of the secret, in hexadecimal.
	Hash string `json:"hash"`
}

// may reports whether the token has a role.
func (t *Token) may(role Role) bool {
	for _, has := range t.Roles {
		if has == role || has == RoleAdmin || role == RoleRead {
			return true
		}
	}
	return false
}

// sees reports whether the token may see a session with these labels.
func (t *Token) sees(labels map[string]string) bool {
	for name, value := range t.Labels {
		if has, ok := labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// hasEmptyLabel reports whether a label has no value. No session has such a label.
func (t *Token) hasEmptyLabel() bool {
	for name, value := range t.Labels {
		if name == "" || value == "" {
			return true
		}
	}
	return false
}

// Tokens are the tokens of a server. Each is a file in a directory of the operator. Only the
// operator may read and write this directory: the floor and the sandbox keep agents out.
type Tokens struct {
	dir string

	mu    sync.Mutex
	known []Token
	read  time.Time // when known was read
	stamp time.Time // the directory's time of change when it was read
}

// OpenTokens opens the tokens in a directory, which need not exist.
func OpenTokens(dir string) *Tokens { return &Tokens{dir: dir} }

// localName is the token that a server on a loopback address makes for the user's own
// command line.
const localName = "local"

var validName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// ErrTokenExists says that a token already exists. ErrNoToken says that it does not exist.
var (
	ErrTokenExists = errors.New("serve: the token already exists")
	ErrNoToken     = errors.New("serve: there is no such token")
)

// Create makes a token and returns its secret. The secret is not stored.
func (t *Tokens) Create(name string, roles []Role, labels map[string]string) (secret string, err error) {
	if !validName.MatchString(name) {
		return "", fmt.Errorf("the name %q of the token is invalid: use a to z, 0 to 9, and . _ -", name)
	}
	if len(roles) == 0 {
		return "", errors.New("the token has no role: give one of read, run, approve and admin")
	}
	for _, r := range roles {
		if !slices.Contains(Roles(), r) {
			var names []string
			for _, known := range Roles() {
				names = append(names, string(known))
			}
			return "", fmt.Errorf("there is no role %q%s: use %s", r, near.Hint(string(r), names), strings.Join(names, ", "))
		}
	}
	if _, _, err := (belay.SessionUpdate{Labels: labels}).Apply("", nil); err != nil {
		return "", fmt.Errorf("labels: %w", err)
	}
	for label, value := range labels {
		if value == "" { // no session has such a label
			return "", fmt.Errorf("label %q has no value: give one, such as %s=ann", label, label)
		}
	}
	token := Token{Name: name, Roles: slices.Compact(slices.Sorted(slices.Values(roles))), Labels: maps.Clone(labels), Created: now()}
	if name == localName { // its secret is in a file, too
		return "", fmt.Errorf("the name %q is for the token that the server makes itself: choose another", name)
	}
	secret = newSecret()
	err = t.put(token, secret, wholefile.Create)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("token %q: %w: rotate it, or revoke it first", name, ErrTokenExists)
	}
	return secret, err
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// put stores a token with a secret. write is a function of package wholefile.
func (t *Tokens) put(token Token, secret string, write func(file string, text []byte) error) error {
	token.Hash = hashOf(secret)
	text, err := json.MarshalIndent(token, "", "  ")
	if err == nil {
		err = os.MkdirAll(t.dir, 0o700)
	}
	if err == nil {
		err = write(t.file(token.Name), append(text, '\n'))
	}
	t.forget()
	if err != nil {
		return fmt.Errorf("store token %q: %w", token.Name, err)
	}
	return nil
}

// secretPrefix is the beginning of every secret, so that tools which look for secrets find it.
const secretPrefix = "belay_"

// newSecret returns 256 random bits as text.
func newSecret() string {
	return secretPrefix + rand.Text() + rand.Text()
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func (t *Tokens) file(name string) string { return filepath.Join(t.dir, name+".json") }

// forget makes the next use read the directory again.
func (t *Tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.read = nil, time.Time{}
}

// List returns the tokens, ordered by name.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := os.Stat(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	// Each change replaces a file, and so changes the time of the directory. Two changes
	// shortly after each other can have the same time: then the directory is read again.
	if stamp := info.ModTime(); t.read.IsZero() || !stamp.Equal(t.stamp) || t.read.Sub(stamp) < time.Second {
		known, err := t.readAll()
		if err != nil {
			return nil, err
		}
		t.known, t.read, t.stamp = known, time.Now(), stamp
	}
	return slices.Clone(t.known), nil
}

func (t *Tokens) readAll() ([]Token, error) {
	files, err := filepath.Glob(filepath.Join(t.dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var all []Token
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was revoked in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("tokens: %w", err)
		}
		var one Token
		if json.Unmarshal(data, &one) != nil || one.Name+".json" != filepath.Base(file) || len(one.Hash) != 2*sha256.Size || one.hasEmptyLabel() {
			return nil, fmt.Errorf("tokens: %s is damaged: remove it, and create the token again", file)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Token) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Rotate gives a token a new secret. The old one no longer works.
func (t *Tokens) Rotate(name string) (secret string, err error) {
	token, err := t.named(name)
	if err != nil {
		return "", err
	}
	secret = newSecret()
	if name == localName { // first, so that Local never stores the hash of the old secret
		if err := wholefile.Write(t.LocalFile(), []byte(secret+"\n")); err != nil {
			return "", fmt.Errorf("store token %q: %w", name, err)
		}
	}
	return secret, t.put(token, secret, wholefile.Write)
}

func (t *Tokens) named(name string) (Token, error) {
	all, err := t.List()
	if err != nil {
		return Token{}, err
	}
	var names []string
	for i := range all {
		if names = append(names, all[i].Name); all[i].Name == name {
			return all[i], nil
		}
	}
	return Token{}, fmt.Errorf("token %q: %w%s", name, ErrNoToken, near.Hint(name, names))
}

// Revoke removes a token. Requests with it fail at once, and its event streams end within
// seconds.
func (t *Tokens) Revoke(name string) error {
	if _, err := t.named(name); err != nil {
		return err
	}
	var err error
	if name == localName { // first, so that Local does not store the token again
		err = os.RemoveAll(t.LocalFile())
	}
	err = errors.Join(err, os.Remove(t.file(name)))
	t.forget()
	if err != nil {
		return fmt.Errorf("revoke token %q: %w", name, err)
	}
	return nil
}

// find returns the token with this secret. Every token is compared in constant time, so that
// the time of an answer tells nothing about the tokens.
func (t *Tokens) find(secret string) (*Token, error) {
	all, err := t.List()
	if err != nil {
		return nil, err
	}
	hash := []byte(hashOf(secret))
	var found *Token
	for i := range all {
		if subtle.ConstantTimeCompare(hash, []byte(all[i].Hash)) == 1 {
			found = &all[i]
		}
	}
	return found, nil
}

// LocalFile returns the file that holds the secret of the token "local", for the user's own command line.
func (t *Tokens) LocalFile() string { return filepath.Join(t.dir, localName+".secret") }

// Local returns the secret of the token "local", which has all roles. It makes the token if it
// does not exist. If several servers start at once, they make one token. The secret is in a
// file that only the user can read.
func (t *Tokens) Local() (string, error) {
	before := ""
	for try := 1; ; try++ {
		data, err := os.ReadFile(t.LocalFile())
		secret := strings.TrimSpace(string(data))
		switch {
		case err == nil && strings.HasPrefix(secret, secretPrefix):
			token, err := t.find(secret)
			if err != nil || token != nil {
				return secret, err
			}
			if secret == before { // it did not change, so no Rotate is at work
				return secret, t.put(Token{Name: localName, Roles: []Role{RoleAdmin}, Created: now()}, secret, wholefile.Write)
			}
			before = secret
			t.forget()
		case err == nil:
			err = os.Remove(t.LocalFile()) // it is damaged
		case errors.Is(err, fs.ErrNotExist):
			if err = os.MkdirAll(t.dir, 0o700); err == nil {
				err = wholefile.Create(t.LocalFile(), []byte(newSecret()+"\n")) // only one server creates it
			}
		}
		if again := errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist); err != nil && (!again || try == 10) { // another server was faster
			return "", fmt.Errorf("store token %q: %w", localName, err)
		}
	}
}

// consoleKey returns the key of the console's cookies: see package console. It makes the key if
// it does not exist. Only the user can read its file.
func (t *Tokens) consoleKey() ([]byte, error) {
	file := filepath.Join(t.dir, "console.key")
	for try := 1; ; try++ {
		data, err := os.ReadFile(file)
		if err == nil {
			key, decoded := hex.DecodeString(strings.TrimSpace(string(data)))
			if decoded == nil && len(key) == 32 {
				return key, nil
			}
			err = os.Remove(file) // it is damaged: everybody must log in again
		} else if errors.Is(err, fs.ErrNotExist) {
			key := make([]byte, 32)
			_, _ = rand.Read(key) // it never fails
			if err = os.MkdirAll(t.dir, 0o700); err == nil {
				err = wholefile.Create(file, []byte(hex.EncodeToString(key)+"\n")) // only one server creates it
			}
		}
		if again := errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist); err != nil && (!again || try == 10) { // another server was faster
			return nil, fmt.Errorf("store the key of the console: %w", err)
		}
	}
}
