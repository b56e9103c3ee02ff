/** Begins. */

import { render } from 'preact';
import { App } from './app';
import { mountAnnouncer } from './lib/announce';
import { entry } from './lib/entry';
import { applyTheme } from './lib/theme';
import { ask } from './pages/overview/early';
import './style/theme.css';
import './style/base.css';
import './style/parts.css';

if (location.pathname === '/' && !entry) ask();
applyTheme();
mountAnnouncer();
const place = document.getElementById('app');
if (place) render(<App />, place);
