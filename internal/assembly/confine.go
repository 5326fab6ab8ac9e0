package assembly

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/toolbox"
)

// sandbox returns the sandbox for commands, or nil if the machine has none or the settings
// switch it off.
func (a *Assembler) sandbox(ctx context.Context, s *config.Loaded) *sandbox.Sandbox {
	if s.Sandbox.Mode == config.SandboxOff {
		return nil
	}
	if found := a.MachineSandbox(ctx); found.Kind() != sandbox.None {
		return found
	}
	return nil
}

// MachineSandbox returns the sandbox of this machine. It searches for the sandbox only
// once.
func (a *Assembler) MachineSandbox(ctx context.Context) *sandbox.Sandbox {
	a.looked.Do(func() { a.box = sandbox.Find(ctx, nil) })
	return a.box
}

// confine makes a command run in the sandbox.
//
// The command may change the project, the temporary directory and the directories in the
// settings, but not the files that control Belay and git. A command of zone 0, and every
// command in read-only mode, cannot change the project. A command has network access only
// if the floor found that it needs the network.
//
// A command that changes the machine runs outside the sandbox, because its approval covered
// that. A command that the floor did not fully understand stays inside.
func (f *Floor) confine(ctx context.Context, call *belay.Invocation, run *toolbox.ShellRun) error {
	if f.box == nil {
		if f.settings.Sandbox.Mode == config.SandboxRequire {
			return fmt.Errorf("%s requires a sandbox, and this machine has none: install bubblewrap, or use a Linux with Landlock; `belay doctor` shows what Belay tried", f.settings.From("sandbox.mode"))
		}
		foretell(run, f.Of(nil).Explain(ctx, call.Tool, call.Input), false)
		return nil
	}
	e := f.recall(judgedCall{call.Session, call.Turn, call.ID, string(call.Input)}).strictest
	if e == nil { // the call was checked in another process, or is forgotten
		e = f.Of(nil).Explain(ctx, call.Tool, call.Input)
		e.Findings, e.Zone = nil, permit.ZoneSafe // no network, no changes, and no way out of the sandbox
	}
	outside := f.outside(e)
	foretell(run, e, !outside)
	if outside {
		return nil
	}
	cache, err := privateCache(f.settings.Project)
	if err != nil {
		return err
	}
	stores, err := storeVariables(cache, e)
	if err != nil {
		return err
	}
	policy := f.policy(e)
	git := seeRepository(f.settings.Project)
	policy.Protect = append(policy.Protect, git.steering()...)
	run.Settle = git.settle
	if run.Argv, err = boxed(f.box, f.settings, policy, run.Argv); err != nil {
		return err
	}
	run.Env = append(append(run.Env, cacheVariables(cache)...), stores...)
	run.Note = "the command ran in a sandbox: it can change only the project and temporary files"
	if readsOnly(e) {
		run.Note = "the command ran in a sandbox: the project is read-only there, because the floor expects that this command only reads; it can change temporary files"
	}
	if !policy.Network {
		run.Note += ", and there is no network"
	}
	return nil
}

// boxed returns the command line that runs a command in the sandbox.
func boxed(box *sandbox.Sandbox, s *config.Loaded, p sandbox.Policy, argv []string) ([]string, error) {
	makeSides(s, p)
	inside, err := box.Command(p, argv)
	if err != nil {
		return argv, fmt.Errorf("the command cannot run in the sandbox: %w", err)
	}
	return inside, nil
}

// makeSides makes the files that SQLite keeps beside a database of Belay, if a command could
// make them. They are empty, which for SQLite is the same as absent. For a missing file, the
// sandbox would make a directory as a placeholder, and while the command runs, no process
// could open the database.
func makeSides(s *config.Loaded, p sandbox.Policy) {
	for _, file := range []string{s.Store, s.Memory.File} {
		info, err := os.Stat(file)
		if config.IsDSN(file) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if dir := filepath.Dir(file); !below(dir, p.Write) || below(dir, p.Protect) {
			continue
		}
		for _, suffix := range []string{"-wal", "-shm", "-journal"} {
			if made, err := os.OpenFile(file+suffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
				_ = made.Close() // nothing was written
			}
		}
	}
}

// Confinement describes how a command would run. It returns "" for other tools.
func (f *Floor) Confinement(e *permit.Explanation) string {
	switch {
	case e.Tool != "shell":
		return ""
	case f.box == nil:
		return "without a sandbox"
	case f.outside(e):
		return "outside the sandbox: it changes the machine"
	case e.Network():
		return "in the sandbox, with network"
	case readsOnly(e):
		return "in the sandbox, with the project read-only and without network"
	default:
		return "in the sandbox, without network"
	}
}

// outside reports whether a command runs outside the sandbox, because it certainly changes
// the machine outside the project. Files that the sandbox lets the command change do not
// count.
func (f *Floor) outside(e *permit.Explanation) bool {
	var policy *sandbox.Policy
	return e.Outside(func(path string) bool {
		if policy == nil { // compute the policy only if needed: it reads the file system
			p := f.policy(e)
			policy = &p
		}
		return below(path, policy.Write) && !below(path, policy.Protect)
	})
}

// below reports whether a path is in the list others, or inside a directory of that list.
// It resolves links in the list.
func below(path string, others []string) bool {
	path = filepath.FromSlash(path)
	return slices.ContainsFunc(others, func(other string) bool {
		if direct, err := filepath.EvalSymlinks(other); err == nil {
			other = direct
		}
		rel, err := filepath.Rel(other, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// policy returns what the sandbox lets a command do. e has the findings of the floor about
// the command.
func (f *Floor) policy(e *permit.Explanation) sandbox.Policy {
	s := f.settings
	p := sandbox.Policy{
		Write:   Existing(slices.Concat([]string{s.Project, os.TempDir()}, f.Roots(), s.Sandbox.Write)),
		Protect: slices.Concat(ownFiles(s), f.later(e)),
		Hide:    hidden(s),
		Network: e.Network(),
		Bounds:  boundsOf(s),
	}
	for _, root := range append([]string{s.Project}, f.Roots()...) {
		p.Protect = append(p.Protect, steering(root, e)...)
	}
	if readsOnly(e) {
		f.keepProject(&p)
	}
	if agent := os.Getenv("SSH_AUTH_SOCK"); e.Agent() && filepath.IsAbs(agent) {
		p.Sockets = append(p.Sockets, agent)
	}
	return p
}

// steering returns the files of the project that control Belay, git and other coding
// agents. If there is no git repository, a command must not create one, unless that is its
// purpose. A repository is dangerous: git runs programs that its settings name, and many
// shell prompts run git.
func steering(project string, e *permit.Explanation) []string {
	var paths []string
	for _, name := range []string{".belay", config.Name, ".claude"} {
		paths = append(paths, filepath.Join(project, name))
	}
	git := filepath.Join(project, ".git")
	_, err := os.Lstat(git)
	if errors.Is(err, fs.ErrNotExist) {
		if !slices.ContainsFunc(e.Findings, makesRepository) {
			paths = append(paths, git)
		}
		return paths
	}
	paths = append(paths, steeringGit(git)...)
	_ = filepath.WalkDir(filepath.Join(git, "modules"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || len(paths) > mostModules {
			return fs.SkipAll // an error here means that there are no submodules
		}
		if _, err := os.Lstat(filepath.Join(path, "HEAD")); err == nil && entry.IsDir() {
			paths = append(paths, steeringGit(path)...)
			return fs.SkipDir
		}
		return nil
	})
	return paths
}

// mostModules limits how many paths are protected for submodules.
const mostModules = 400

// steeringGit returns the files of a git repository that are dangerous if a command changes
// them: git runs them, or they name programs that git runs.
func steeringGit(dir string) []string {
	var paths []string
	for _, name := range []string{"hooks", "config", "config.worktree", "info/attributes"} {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return paths
}

// makesRepository reports whether a command creates a git repository.
func makesRepository(f permit.Finding) bool {
	return f.Kind == permit.KindCommand && (f.Subject == "git init" || strings.HasPrefix(f.Subject, "git init ") || strings.HasPrefix(f.Subject, "git clone "))
}

// storeVariables returns variables that make Go and cargo download packages into
// directories of this project. A package may run code during installation. Because of
// these directories, such code cannot change the packages that builds outside the sandbox
// use. The first command that downloads creates the directory, and later confined
// commands use it. Until then builds read the user's own packages.
func storeVariables(cache string, e *permit.Explanation) ([]string, error) {
	root, err := os.OpenRoot(cache) // OpenRoot, because a confined command may have made links there
	if err != nil {
		return nil, fmt.Errorf("create the directory for packages: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is left to be written
	var env []string
	modules, err := makeStore(root, "go-mod", fetches(e, "go"))
	if err != nil {
		return nil, err
	}
	if modules {
		env = append(env, "GOMODCACHE="+filepath.Join(cache, "go-mod"))
		proxy := "file://" + filepath.ToSlash(filepath.Join(userModules(), "cache", "download")) // packages that the user already has need no download
		if e.Network() {
			env = append(env, "GOPROXY="+proxy+","+cmp.Or(os.Getenv("GOPROXY"), "https://proxy.golang.org,direct"))
		} else {
			env = append(env, "GOPROXY="+proxy, "GONOPROXY=none")
		}
	}
	crates, err := makeStore(root, "cargo", fetches(e, "cargo"))
	if err != nil {
		return nil, err
	}
	if crates {
		env = append(env, "CARGO_HOME="+filepath.Join(cache, "cargo"))
	}
	return env, nil
}

// fetches reports whether a command runs this program with access to the network.
func fetches(e *permit.Explanation, program string) bool {
	return slices.ContainsFunc(e.Findings, func(f permit.Finding) bool {
		name, _, _ := strings.Cut(f.Subject, " ")
		return f.Kind == permit.KindCommand && f.Zone >= permit.ZoneNetwork && filepath.Base(name) == program
	})
}

// makeStore reports whether a directory for packages exists. It creates the directory if
// wanted is true. A new directory for cargo gets a copy of the user's cargo settings,
// because they name the registry.
func makeStore(cache *os.Root, name string, wanted bool) (bool, error) {
	if _, err := cache.Lstat(name); err == nil || !wanted {
		return err == nil, nil
	}
	if err := cache.Mkdir(name, 0o700); err != nil {
		return false, fmt.Errorf("create the directory for packages: %w", err)
	}
	home, err := os.UserHomeDir()
	if name != "cargo" || err != nil {
		return true, nil //nolint:nilerr // without a home there are no settings
	}
	for _, file := range []string{"config.toml", "config"} {
		data, err := os.ReadFile(filepath.Join(cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")), file)) //nolint:gosec // the settings of the user who runs it
		if err != nil {
			continue // the user has no such file
		}
		if err := cache.WriteFile(filepath.Join(name, file), data, 0o600); err != nil {
			return false, fmt.Errorf("create the directory for packages: %w", err)
		}
	}
	return true, nil
}

// userModules returns the user's own Go module cache.
func userModules() string {
	if modules := os.Getenv("GOMODCACHE"); modules != "" {
		return modules
	}
	path, _, _ := strings.Cut(os.Getenv("GOPATH"), string(filepath.ListSeparator))
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		path = filepath.Join(home, "go")
	}
	return filepath.Join(path, "pkg", "mod")
}

// cacheVariables returns variables that make build tools keep their caches in this
// directory.
func cacheVariables(dir string) []string {
	return []string{
		"XDG_CACHE_HOME=" + dir,
		"GOCACHE=" + filepath.Join(dir, "go-build"),
		"npm_config_cache=" + filepath.Join(dir, "npm"),
		"YARN_CACHE_FOLDER=" + filepath.Join(dir, "yarn"),
		"PIP_CACHE_DIR=" + filepath.Join(dir, "pip"),
		"CCACHE_DIR=" + filepath.Join(dir, "ccache"),
	}
}

// CacheDir returns the cache directory for confined commands of a project.
func CacheDir(project string) string {
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(os.TempDir(), fmt.Sprintf("belay-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
}

// privateCache creates the cache directory for confined commands. They must not share a
// cache with the user's own builds, because files could leave the sandbox that way.
func privateCache(project string) (string, error) {
	dir := CacheDir(project)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create the directory for caches: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("create the directory for caches: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !isMine(info) {
		return "", fmt.Errorf("%s must be a private cache directory of this user, and is not: remove it", dir)
	}
	return dir, nil
}

// Sandboxed describes the sandbox for commands.
func (f *Floor) Sandboxed() string {
	switch {
	case f.settings.Sandbox.Mode == config.SandboxOff:
		return fmt.Sprintf("off (%s): calls of commands are one zone higher", f.settings.From("sandbox.mode"))
	case f.box != nil:
		return string(f.box.Kind())
	case f.settings.Sandbox.Mode == config.SandboxRequire:
		return "none, and commands are denied without a sandbox"
	default:
		return "none: calls of commands are one zone higher"
	}
}
