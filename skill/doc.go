// Package skill gives an agent instructions for kinds of tasks, in files or in Go, that are added to a conversation
// when they are needed.
//
// # Usage
//
// A catalog holds the skills of any number of sources, in rising precedence. An extension gives them to an agent:
//
//	catalog := skill.NewCatalog(ctx, skill.FS("built in", builtIn), skill.Dir(home+"/skills"), skill.Dir(".belay/skills"))
//	skills, err := skill.New(catalog, &skill.Options{Project: "."})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{skills}})
//
// A [Skill] is used in up to three ways:
//
//   - content: the model sees its name and description, and reads it with the tool
//     read_skill when a task fits, section by section if it has any;
//   - computed: a [Handler] makes its text; the model calls an exposed one with the tool
//     invoke_skill;
//   - triggered: one of its [Trigger] values matches the task, or the text names it as
//     skill:ID, and its text becomes a section of that turn's prompt, with variables
//     filled in.
//
// A user adds any of them to a message by typing /name, including hidden ones.
//
// # Files
//
// [Dir] and [FS] read skills in the Agent Skills layout: a directory with a file SKILL.md, with YAML between two
// lines --- and Markdown after it. The other Markdown files of the directory are its sections; files in scripts,
// references and assets are its resources. Markdown and YAML files beside the directories are skills too; a YAML file
// has its text below the key body, or front matter and a body as Markdown has. These fields are read:
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
// Loading is lenient and reports what it tolerated. A file that cannot be parsed is reported with its line; the
// others are loaded. [Check] is strict.
//
// # Limits
//
// A file may have 1 MiB and its YAML 64 KiB. The list of skills for the model is cut to a budget, see [Listing]. The
// text that triggers add is cut by the limits of prompt sections.
//
// # Concurrency
//
// A [Catalog], a [Directory] and an [Extension] are safe for concurrent use, and have no goroutines of their own.
// Before a turn the sources are read again if the last reading is more than a second ago. One turn reads; the others
// use the known skills.
//
// # Errors
//
// A catalog has no errors: [Catalog.Problems] returns skills that could not be loaded, skills hidden by others, and
// tolerated mistakes. [ErrNotFound] means that there is no such skill or section. If a handler fails, the turn of a
// user who named its skill ends; a model that called it gets the error.
//
// # Testing
//
// [Catalog.Match] returns which skills a task makes active, and why. Handlers are plain functions. Package belaytest
// runs turns with an agent that has the extension.
package skill
