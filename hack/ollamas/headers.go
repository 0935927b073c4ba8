//go:build headers

// Never compiled. Its import keeps malgo among the pinned modules: one of its files is a header that Ollama needs.
package headers

import _ "github.com/gen2brain/malgo"
