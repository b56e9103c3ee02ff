import { defineConfig } from 'vite';

/** The controller serves `dist` at `/`; `npm run dev` asks the mock's API, or a controller's at the same address. */
const controller = 'http://127.0.0.1:8377';

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: ['es2022', 'chrome123', 'firefox128', 'safari17.5'],
    // Everything is a file of its own: the controller's content security policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/api': controller } },
});
