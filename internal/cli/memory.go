package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/memory"
	"github.com/spf13/cobra"
)

func (a *app) memoryCommand() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:   "memory",
		Short: "List, show, search, accept and forget what was remembered",
		Long: `Belay can remember facts for later sessions. Set memory.mode in the user's belay.yaml, or set BELAY_MEMORY_MODE. With read,
Belay recalls memories and adds none. With propose, new memories wait until you accept them. With on, it adds them at once.

Memories belong to the user. They are in one file for all projects: the file that memory.file names, or else a file beside the
user's settings. Memories of another project are not recalled.`,
		Example: `  belay memory list
  belay memory search "staging server"
  belay memory accept --all
  belay memory forget m-k3f9x`,
	})
	cmd.AddCommand(a.listMemoriesCommand(), a.showMemoryCommand(), a.searchMemoriesCommand(), a.acceptMemoriesCommand(), a.forgetMemoriesCommand())
	return cmd
}

// noMemoriesError means that the file of memories does not exist.
type noMemoriesError struct{ path, mode string }

func (e *noMemoriesError) Error() string {
	text := fmt.Sprintf("there are no memories yet: %s does not exist", e.path)
	if e.mode == config.MemoryOff {
		text += ". `memory: {mode: on}` in the user's " + config.Name + " turns memory on"
	}
	return text
}

// noneYet prints a noMemoriesError as a remark and returns nil, because commands that
// only read do not fail for this reason. It returns any other error unchanged.
func (a *app) noneYet(err error) error {
	if none := (*noMemoriesError)(nil); errors.As(err, &none) {
		a.remarkf("%s", none)
		return nil
	}
	return err
}

// memories opens the file of memories and calls f with it. It does not create the file.
func (a *app) memories(ctx context.Context, f func(*config.Loaded, *memory.Store) error) (err error) {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	if _, err := os.Stat(settings.Memory.File); errors.Is(err, fs.ErrNotExist) {
		return &noMemoriesError{settings.Memory.File, settings.Memory.Mode}
	}
	store, err := assembly.OpenMemory(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return f(settings, store)
}

// memoryStates are the values of --state.
func memoryStates() []string {
	return []string{string(memory.Active), string(memory.Proposed), string(memory.Forgotten)}
}

func (a *app) listMemoriesCommand() *cobra.Command {
	var asJSON, everywhere bool
	var states []string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List memories, the newest first",
		Long:  "Lists the memories of the user and of this project, and those that wait to be accepted.",
		Example: `  belay memory list
  belay memory list --state proposed
  belay memory list --all --json`,
		Args: arguments(0, 0, "memory list takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := memory.Filter{States: []memory.State{memory.Active, memory.Proposed}}
			if len(states) > 0 {
				filter.States = nil
			}
			for _, s := range states {
				if !slices.Contains(memoryStates(), s) {
					return usage("--state: there is no state %q%s: use one of %s", s, near.Hint(s, memoryStates()), strings.Join(memoryStates(), ", "))
				}
				filter.States = append(filter.States, memory.State(s))
			}
			err := a.memories(cmd.Context(), func(settings *config.Loaded, store *memory.Store) error {
				return a.listMemories(cmd.Context(), store, filter, limit, asJSON, func(m *memory.Memory) bool { return everywhere || assembly.RecalledIn(settings, m) })
			})
			return a.noneYet(err)
		},
	}
	cmd.Flags().StringArrayVar(&states, "state", nil, "only memories in this state: "+strings.Join(memoryStates(), ", ")+"; may be repeated")
	cmd.Flags().BoolVar(&everywhere, "all", false, "include memories of other projects")
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "list at most this many; 0 for all")
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	complete(cmd, "state", memoryStates())
	return cmd
}

func (a *app) listMemories(ctx context.Context, store *memory.Store, filter memory.Filter, limit int, asJSON bool, shown func(*memory.Memory) bool) error {
	out := a.newMemoryList(asJSON)
	for m, err := range store.List(ctx, filter) {
		if err != nil {
			return err
		}
		if !shown(&m) {
			continue
		}
		if out.memory(m, &m); limit > 0 && out.rows() == limit {
			break
		}
	}
	return out.end("there are no memories")
}

// memoryList is a list of memories.
type memoryList struct {
	*list

	now time.Time
}

func (a *app) newMemoryList(asJSON bool) *memoryList {
	return &memoryList{a.newList(asJSON, "MEMORY", "STATE", "WHOSE", "CHANGED", "TEXT"), time.Now()}
}

// memory adds a row for a memory. value is the object for --json.
func (t *memoryList) memory(value any, m *memory.Memory) {
	state := string(m.State)
	switch m.State {
	case memory.Proposed:
		state = t.a.onOut.yellow(state)
	case memory.Forgotten:
		state = t.a.onOut.dim(state)
	case memory.Active:
		state = t.a.onOut.green(state)
	}
	whose := string(m.Scope.Kind)
	if m.Scope.Name != "" {
		whose += " " + filepath.Base(m.Scope.Name)
	}
	t.add(value, m.ID, state, oneLine(whose), t.a.onOut.dim(ago(t.now, m.Updated)), short(oneLine(m.Text), max(t.a.width-60, 30)))
}

// findMemory finds a memory by its id, or by a prefix that only its id has.
func findMemory(ctx context.Context, store *memory.Store, word string) (memory.Memory, error) {
	var found []memory.Memory
	if word == "" {
		return memory.Memory{}, usage("name a memory: `belay memory list` lists them")
	}
	for m, err := range store.List(ctx, memory.Filter{Prefix: word, Limit: 6}) {
		if err != nil {
			return memory.Memory{}, err
		}
		if m.ID == word {
			return m, nil
		}
		found = append(found, m)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return memory.Memory{}, fmt.Errorf("there is no memory %q: `belay memory list` lists them", word)
	}
	var ids []string
	for _, m := range found {
		ids = append(ids, m.ID)
	}
	return memory.Memory{}, fmt.Errorf("%q matches the ids of several memories: %s", word, strings.Join(ids, ", "))
}

func (a *app) showMemoryCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Print a memory, and where it is from",
		Long:              "Prints a memory in full, with its tags, its session and turn, and when it was last recalled.",
		Example:           "  belay memory show m-k3f9x",
		Args:              arguments(1, 1, "name one memory: `belay memory list` lists them"),
		ValidArgsFunction: a.completeMemories,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.memories(cmd.Context(), func(_ *config.Loaded, store *memory.Store) error {
				m, err := findMemory(cmd.Context(), store, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(m)
				}
				return a.showMemory(&m)
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

func (a *app) showMemory(m *memory.Memory) error {
	dim := a.onOut.dim
	var t table
	t.add(dim("memory"), m.ID)
	t.add(dim("state"), string(m.State))
	t.add(dim("whose"), oneLine(m.Scope.String()))
	if len(m.Tags) > 0 {
		t.add(dim("tags"), oneLine(strings.Join(m.Tags, ", ")))
	}
	if m.Session != "" {
		t.add(dim("from"), oneLine("session "+m.Session+", turn "+m.Turn))
	}
	t.add(dim("created"), m.Created.Local().Format(time.DateTime))
	t.add(dim("changed"), m.Updated.Local().Format(time.DateTime))
	if err := t.write(a.out, nil); err != nil {
		return err
	}
	if m.Text == "" {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "\n%s\n", visible.All(m.Text))
	return err
}

func (a *app) searchMemoriesCommand() *cobra.Command {
	var asJSON, everywhere bool
	var limit int
	cmd := &cobra.Command{
		Use:   `search "TEXT"`,
		Short: "Search memories for a text, the best match first",
		Long:  "Searches the memories of the user and of this project as a turn does: by the words of the text. A rare word\ncounts more than a common one. There is no query syntax. Memories that wait to be accepted are not found.",
		Example: `  belay memory search "which server is staging?"
  belay memory search --all --json zeus`,
		Args: arguments(1, 1, "give the text as one argument, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage("--limit: it must be 1 or more")
			}
			err := a.memories(cmd.Context(), func(settings *config.Loaded, store *memory.Store) error {
				q := memory.Query{Text: args[0], Limit: limit}
				if !everywhere {
					q.Scopes = []memory.Scope{{Kind: memory.User}, {Kind: memory.Project, Name: settings.Project}, {Kind: memory.Agent, Name: assembly.MainAgent}}
				}
				found, err := store.Search(cmd.Context(), q)
				if err != nil {
					return err
				}
				out := a.newMemoryList(asJSON)
				for i := range found {
					out.memory(found[i], &found[i].Memory)
				}
				return out.end("no memory matches")
			})
			return a.noneYet(err)
		},
	}
	cmd.Flags().BoolVar(&everywhere, "all", false, "include memories of other projects and agents")
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "print at most this many")
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

func (a *app) acceptMemoriesCommand() *cobra.Command {
	var asJSON, every bool
	cmd := &cobra.Command{
		Use:   "accept ID...",
		Short: "Accept proposed memories",
		Long:  "Makes proposals active, so that they are recalled. To turn one down, forget it.",
		Example: `  belay memory accept m-k3f9x
  belay memory accept --all`,
		Args:              arguments(0, 1000, "name memories"),
		ValidArgsFunction: a.completeMemories,
		RunE: func(cmd *cobra.Command, args []string) error {
			if every == (len(args) > 0) {
				return usage("name the memories to accept, or pass --all: `belay memory list --state proposed` lists them")
			}
			return a.memories(cmd.Context(), func(settings *config.Loaded, store *memory.Store) error {
				if every {
					for m, err := range store.List(cmd.Context(), memory.Filter{States: []memory.State{memory.Proposed}}) {
						if err != nil {
							return err
						}
						if assembly.RecalledIn(settings, &m) {
							args = append(args, m.ID)
						}
					}
				}
				return a.changeMemories(cmd.Context(), store, args, "accepted", memory.Active, store.Accept, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&every, "all", false, "all proposals of the user and of this project")
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

func (a *app) forgetMemoriesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "forget ID...",
		Short:             "Delete memories, or turn down proposals",
		Long:              "Removes the text of memories and their search index from the file and from its log. The file keeps\nonly the fact that there was a memory, and when. Sessions and backups are not changed.",
		Example:           "  belay memory forget m-k3f9x m-9adxq",
		Args:              arguments(1, 1000, "name memories: `belay memory list` lists them"),
		ValidArgsFunction: a.completeMemories,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.memories(cmd.Context(), func(_ *config.Loaded, store *memory.Store) error {
				return a.changeMemories(cmd.Context(), store, args, "forgotten", memory.Forgotten, store.Forget, asJSON)
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

// changeMemories accepts or forgets memories. It looks up all ids first, so that a mistyped
// id changes nothing.
func (a *app) changeMemories(ctx context.Context, store *memory.Store, words []string, did string, as memory.State, change func(context.Context, string) (memory.Memory, error), asJSON bool) error {
	var ids []string
	already := make(map[string]bool)
	for _, word := range words {
		m, err := findMemory(ctx, store, word)
		if err != nil {
			return err
		}
		ids = append(ids, m.ID)
		already[m.ID] = m.State == as
	}
	for _, id := range ids {
		m, err := change(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case asJSON:
			err = a.printJSON(m)
		case already[id]:
			a.remarkf("%s is %s already", m.ID, as)
		default:
			_, err = fmt.Fprintf(a.out, "%s %s\n", did, m.ID)
		}
		if err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		a.remarkf("there are no proposals to accept")
	}
	return nil
}

func (a *app) completeMemories(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var words []string
	_ = a.memories(cmd.Context(), func(settings *config.Loaded, store *memory.Store) error { // ignore errors: the user can type the id without completion
		for m, err := range store.List(cmd.Context(), memory.Filter{Prefix: word, States: []memory.State{memory.Active, memory.Proposed}, Limit: 50}) {
			if err != nil {
				return err
			}
			if assembly.RecalledIn(settings, &m) {
				words = append(words, m.ID+"\t"+short(oneLine(m.Text), 60))
			}
		}
		return nil
	})
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
