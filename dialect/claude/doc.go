// Package claude reads the files of Claude Code: instructions, commands, permissions, MCP
// servers, agents and plugins. It translates them to the types of Belay's own packages.
//
// Experimental: the packages for other agents follow contracts that their vendors change at any
// time.
//
// # Usage
//
//	files := claude.ReadInstructions(&claude.Where{Project: "/srv/app", Home: "/srv/ada"})
//	...
//	text := claude.Render(files)
//
// The package only reads. It runs nothing and starts nothing. The caller decides what of
// the result to use: package claude knows neither trust nor settings.
//
// # Concurrency
//
// All functions can be called from several goroutines.
//
// # Errors
//
// These files were written for another program, so one strange file must not keep Belay from
// working. Readers return notes about what they left out or changed, with file and line.
// There is one exception: a rule that denies is never left out. If it has no exact
// translation, the translation denies more.
//
// # Testing
//
// The tests have tables of events, outputs and expected answers of hooks, and of files and
// their translation.
package claude
