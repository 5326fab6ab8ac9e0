package permit

import (
	"path"
	"strings"
)

// knownOptionCommands are programs that mostly read, but have options that run, load,
// fetch or write. A command with an option that is not in its option list is unknown,
// unless the list begins with *: see [invoked.options].
func knownOptionCommands(t table) {
	t.add("pandoc", pandocCommand)
	t.add("rpm", rpmCommand)
	t.add("rpmquery", reader(rpmOptions))
	t.add("apt-cache", func(c *invoked) {
		if o := c.options(c.args, "* o=! option=! c=! config-file=! p=! pkg-cache=! s=! src-cache=!"); word(o.rest, 0) == "gencaches" {
			c.zone(ZoneMachine, "changes the installed programs of the machine")
		}
		c.usesAll()
	})
	t.add("unar", func(c *invoked) {
		c.readAll(c.options(c.args, "* o=> output-directory=> p= password= e= encoding= k= forks=").rest)
		c.unknown("the archive determines which files it writes: use tar or unzip with a new directory")
	})
	t.add("lspci", func(c *invoked) {
		o := c.options(c.args, "* A= O=! H= F=< p=< i=< s= d=")
		if o.has("q", "Q") {
			c.zone(ZoneNetwork, "looks up names on the network")
		}
		c.usesAll()
	})
	t.add("tldr", func(c *invoked) {
		if o := c.options(c.args, "l list a v version p= platform= L= language= h help f=< render=< u update s= search= markdown"); o.has("u", "update") {
			c.zone(ZoneNetwork, "fetches from the network")
		}
		c.usesAll()
	})
	t.add("xmllint", xmlCommand)
	t.add("man", manCommand)
	t.add("getent", nameServiceCommand)
	t.add("kustomize", func(c *invoked) {
		o := c.options(c.args, "o=> output=> stack-trace h help as-current-user e= env= mount= network! network-name=! enable-alpha-plugins! enable-exec! enable-helm! helm-command=! helm-api-versions= helm-kube-version= "+
			"helm-debug load-restrictor=! enable-star! enable-managedby-label reorder=")
		for _, a := range o.from(1) {
			c.readOrFetch(a)
		}
		if word(o.rest, 0) == "edit" {
			c.zone(ZoneWorkspace, "")
			c.write(literal("kustomization.yaml"))
		}
	})
	t.add("kubeval kubeconform", func(c *invoked) {
		c.readAll(c.options(c.args, "* o= output= schema-location= s= cache=> d= directories=").rest)
		c.zone(ZoneNetwork, "fetches schemas from the network")
	})
}

// readOrFetch is like read, but the word may be a URL.
func (c *invoked) readOrFetch(a arg) {
	if strings.Contains(a.text, "://") || strings.HasPrefix(a.text, "git@") || strings.HasPrefix(a.text, "github.com/") {
		c.zone(ZoneNetwork, "fetches from the network")
		c.fetch(a)
		return
	}
	c.read(a)
}

// plainFormats are formats that pandoc itself supports, so they are not scripts.
const plainFormats = "markdown markdown_strict markdown_phpextra markdown_mmd gfm commonmark commonmark_x html html4 html5 json native docx odt epub csv tsv ipynb mediawiki textile jira plain rtf man asciidoc revealjs ms " +
	"latex beamer rst org typst opml docbook docbook5 pptx context texinfo"

// pandocCommand judges pandoc. Input in some formats can include other files, and a
// format may be a script.
func pandocCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "o=> output=> filter=$ F=$ L=$ lua-filter=$ pdf-engine=$ pdf-engine-opt=! f= t= from= to= template=< r= w= read= write= metadata= M= metadata-file=< V= variable= defaults=! d=! extract-media=> "+
		"resource-path=! data-dir=! css= c= H=< B=< A=< include-in-header=< include-before-body=< include-after-body=< s standalone toc table-of-contents toc-depth= N number-sections columns= wrap= eol= dpi= "+
		"shift-heading-level-by= highlight-style= no-highlight strip-comments reference-doc=< atx-headers markdown-headings= reference-links reference-location= ascii p preserve-tabs tab-stop= quiet verbose "+
		"fail-if-warnings list-input-formats list-output-formats list-extensions=? list-highlight-styles v version h help print-default-template= self-contained! embed-resources! mathjax=? mathml section-divs title-prefix= T= trace")
	inputs := o.values("f", "from", "r", "read")
	for _, f := range append(o.values("t", "to", "w", "write"), inputs...) {
		if name, _, _ := strings.Cut(strings.ReplaceAll(f.text, "-", "+"), "+"); !f.known || !oneOf(name, plainFormats) {
			c.unknown("Belay does not know the format " + shown(f.text))
		}
	}
	for _, f := range inputs {
		if name, _, _ := strings.Cut(f.text, "+"); oneOf(name, "latex beamer rst org typst docbook docbook5 man asciidoc context texinfo") {
			c.unknown("a document in the format " + shown(name) + " can include any file")
		}
	}
	for _, a := range o.rest {
		if len(inputs) == 0 && oneOf(strings.ToLower(path.Ext(a.text)), ".tex .latex .ltx .rst .org .typ .lua .dbk .xml .t2t .muse .wiki .adoc") {
			c.unknown("a document in this format can include any file")
		}
		c.readOrFetch(a)
	}
	for _, out := range o.values("o", "output") {
		if path.Ext(out.text) == ".pdf" {
			c.zone(ZoneBuild, "runs a program that makes the PDF")
		}
	}
}

// rpmOptions are the options of rpm queries.
const rpmOptions = "q query a all l list i info c configfiles d docfiles f=< file=< p=< package=< R requires P provides whatrequires= whatprovides= last qf= queryformat= changelog s state V verify v verbose version h help conflicts obsoletes g= group= filesbypkg"

// rpmCommand judges rpm. Everything except a query changes the machine.
func rpmCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	if o := parseOptions(c.args, "*"); o.has("q", "query", "V", "verify") && !o.has("e", "U", "F", "erase", "upgrade", "install", "import") {
		c.options(c.args, rpmOptions)
		c.usesAll()
		return
	}
	c.known(c.args)
	c.zone(ZoneMachine, "changes the installed programs of the machine, or runs macros")
}

// nameServiceCommand judges getent. It queries databases of users, hosts and services.
func nameServiceCommand(c *invoked) {
	o := c.options(c.args, "i no-idn A no-addrconfig s= service= V version usage help")
	switch base := word(o.rest, 0); {
	case len(o.rest) == 0, oneOf(base, "passwd group services protocols"):
	case strings.Contains(base, "shadow"):
		c.zone(ZoneMachine, "shows the password hashes of users")
	default:
		c.zone(ZoneNetwork, "may look up names on the network")
	}
}

// xmlCommand judges xmllint. With some options a document can include any file.
func xmlCommand(c *invoked) {
	o := c.options(c.args, "-o=> output=> xpath= xpath0= schema=< relaxng=< schematron=< dtdvalid=< dtdvalidfpi=! shell! path=! encode= pretty= maxmem= pattern= catalogs! nocatalogs noent! xinclude! noxincludenode! loaddtd! dtdattr! valid! postvalid! "+
		"load-trace! insert format noout nonet huge recover debug version copy nowrap htmlout html xmlout nodefdtd push memory sax sax1 stream walker timing repeat compress noblanks nocdata nsclean quiet c14n c14n11 exc-c14n dropdtd "+
		"noenc nocompact nofixup-base-uris strict-namespace oldxml10 max-ampl=")
	for _, a := range o.rest {
		if strings.Contains(a.text, "://") {
			c.fetch(a)
			c.zone(ZoneNetwork, "fetches from the network")
			continue
		}
		c.read(a)
	}
}

// manCommand judges man. A manual page can include any file, so only pages of the system
// are harmless.
func manCommand(c *invoked) {
	o := c.options(c.args, "a all k apropos f whatis w where path location W where-cat location-cat d debug D default i ignore-case I match-case K global-apropos l! local-file! P=$ pager=$ r= prompt= 7 ascii E= encoding= R= recode= "+
		"t troff T=? troff-device=? H! html! X! gxditview! Z ditroff C=! config-file=! L= locale= m=! systems=! M=! manpath=! S= s= sections= e= extension= p= preprocessor=$ u update c catman regex wildcard names-only no-subpages "+
		"no-hyphenation no-justification nh nj h help V version warnings=? usage ?")
	for _, a := range o.rest {
		if strings.Contains(a.text, "/") {
			c.read(a)
			c.unknown("a manual page of the project can include any file: read the page with cat")
		}
	}
}
