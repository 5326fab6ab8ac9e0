// Package skill teaches an agent what it is not born with: instructions for kinds of
// tasks, in files or in Go, that get into a conversation when they are needed.
//
// # Usage
//
// A catalog is the skills of any number of sources, in rising precedence. An
// extension gives them to an agent:
//
//	catalog := skill.NewCatalog(ctx, skill.FS("built in", builtIn), skill.Dir(home+"/skills"), skill.Dir(".belay/skills"))
//	skills, err := skill.New(catalog, &skill.Options{Project: "."})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{skills}})
//
// A [Skill] gets in by three ways, and may have all of them:
//
//   - content: the model is told its name and description, and reads it with the tool
//     read_skill when a task fits, section by section if it has any;
//   - computed: a [Handler] makes its text; the model calls an exposed one with the tool
//     invoke_skill;
//   - triggered: one of its [Trigger] values matches the task, or the text names it as
//     skill:ID, and its text becomes a section of that turn's prompt, with variables
//     filled in.
//
// A user puts any of them in front of a message by typing /name, hidden ones too.
//
// # Files
//
// [Dir] and [FS] read skills in the Agent Skills layout: a directory with a file
// SKILL.md, with YAML between two lines --- and Markdown behind it. The other Markdown
// files of the directory are its sections; files in scripts, references and assets are
// its resources. Markdown and YAML files beside the directories are skills too; a YAML
// file has its text below the key body, or front matter and a body as Markdown has. These
// fields are read:
//
//	name           what it is called            the directory's name
//	description    what it is for, and when     none
//	license, compatibility, metadata            none
//	allowed-tools  what an active skill limits a turn to
//	id             what skill:ID names          the name
//	priority       higher ones come first       0
//	hidden         keeps it out of lists        false
//	disable-model-invocation                    false
//	               keeps the model from using it
//	user-invocable whether users can name it    true
//	triggers       keywords, or type and pattern
//	agents         the agents that it is for    all
//	tags           words for people
//	body           its text, in a YAML file without front matter
//
// Loading is lenient and says what it tolerated; a file that cannot be understood is
// reported with its line and does not hide the others. [Check] is strict.
//
// # Limits
//
// A file may have 1 MiB and its YAML 64 KiB. The list of skills that the model is told
// is cut to a budget, see [Listing]. What triggers add is cut by the limits that all
// prompt sections have.
//
// # Concurrency
//
// A [Catalog], a [Directory] and an [Extension] are safe for concurrent use, and have no
// goroutines of their own. Sources are asked again before a turn, if that was last done
// a second ago, by one turn while the others go on with what is known.
//
// # Errors
//
// A catalog has no errors: [Catalog.Problems] tells what could not be loaded, what
// another skill stands in front of and what was tolerated. [ErrNotFound] says that
// there is no such skill or section. A handler that fails ends the turn of a user who
// named its skill; a model is told.
//
// # Testing
//
// [Catalog.Match] says which skills a task makes active, and why. Handlers are plain
// functions. Package belaytest takes turns with an agent that has the extension.
package skill
