// Package skill gives an agent instructions for kinds of tasks. A skill is written in a
// file or in Go, and is added to a conversation when it is needed.
//
// # Usage
//
// A catalog has the skills of any number of sources. If two sources have a skill with the
// same name, the later source wins. An extension gives the skills to an agent:
//
//	catalog := skill.NewCatalog(ctx, skill.FS("built in", builtIn), skill.Dir(home+"/skills"), skill.Dir(".belay/skills"))
//	skills, err := skill.New(catalog, &skill.Options{Project: "."})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{skills}})
//
// A [Skill] can be used in three ways:
//
//   - content: the model sees the skill's name and description. When a task fits, the
//     model reads the skill with the tool read_skill. It can read a long skill section by
//     section.
//   - computed: a [Handler] makes the text. The model can call an exposed handler with the
//     tool invoke_skill.
//   - triggered: a [Trigger] of the skill matches the task, or the task names the skill as
//     skill:ID. The skill's text then becomes a section of the prompt of that turn, with
//     variables filled in.
//
// A user adds a skill to a message by typing /name. This also works for hidden skills.
//
// # Files
//
// [Dir] and [FS] read skills in the Agent Skills layout: a directory with a file
// SKILL.md. The file has YAML between two lines ---, and Markdown after it. The other
// Markdown files of the directory are the skill's sections. The files in scripts,
// references and assets are its resources. A Markdown or YAML file that is not in such a
// directory is a skill too. A YAML file has its text in the key body, or it has front
// matter and a body like a Markdown file. These fields are read (the right column is the
// default):
//
//	name           the name of the skill        the directory's name
//	description    what it is for, and when     none
//	license, compatibility, metadata            none
//	allowed-tools  the only tools that a turn may use while the skill is active
//	id             the ID in skill:ID           the name
//	priority       higher ones come first       0
//	hidden         keeps it out of lists        false
//	disable-model-invocation                    false
//	               keeps the model from using it
//	user-invocable whether users can name it    true
//	triggers       keywords, or type and pattern
//	agents         the agents that may use it   all
//	tags           words for people
//	body           its text, in a YAML file without front matter
//
// Loading a file tolerates small mistakes and reports them. A file that cannot be parsed
// is reported with the line of the mistake. The other files are loaded. [Check] tolerates
// no mistakes.
//
// # Limits
//
// A file may have 1 MiB, and its YAML 64 KiB. The list of skills for the model is cut to
// a budget, see [Listing]. The limits of prompt sections cut the text that triggers add.
//
// # Concurrency
//
// A [Catalog], a [Directory] and an [Extension] are safe for concurrent use. They keep no
// goroutines running. Before a turn, the sources are read again if they were last read
// more than a second ago. If several turns begin at that time, only one of them reads the
// sources, and the others use the known skills.
//
// # Errors
//
// The functions of a catalog that read sources return no errors. [Catalog.Problems]
// returns skills that could not be loaded, skills that other skills hide, and tolerated
// mistakes. [ErrNotFound] means that there is no such skill or section. If a user names a
// skill and its handler fails, the turn ends. If a model calls the skill, the model gets
// the error.
//
// # Testing
//
// [Catalog.Match] returns which skills a task makes active, and why. Handlers are plain
// functions. Package belaytest runs turns with an agent that has the extension.
package skill
