/** A figure of a report, inlined in the colours of this page. */

import { useEffect, useRef } from 'preact/hooks';

/** The reports' light palette, and the variables of this page that have the same meaning in both themes. */
const palette: Record<string, string> = {
  '#fff': '--paper',
  '#1b1f24': '--ink',
  '#57606a': '--muted',
  '#e4e7eb': '--grid',
  '#a8201a': '--bad',
  '#0067a5': '--c0',
  '#b94700': '--c1',
  '#007a5a': '--c2',
  '#93477c': '--c3',
  '#6f6100': '--c4',
  '#4a4f57': '--c5',
};

const recoloured = (style: string) =>
  style.replace(/#[0-9a-f]{3,6}\b/gi, (hex) =>
    palette[hex.toLowerCase()] ? `var(${palette[hex.toLowerCase()]})` : hex,
  );

/**
 * Puts a drawing into a shadow root: its style stays inside, as an adopted style sheet, which no content security policy
 * objects to; scripts are thrown away.
 */
export function Figure({ svg }: { svg: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const drawing = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
    const root = host.current?.shadowRoot ?? host.current?.attachShadow({ mode: 'open' });
    if (!root) return;
    if (drawing.localName !== 'svg') {
      root.textContent = 'The figure cannot be read.';
      return;
    }
    const sheet = new CSSStyleSheet();
    const styles = [...drawing.querySelectorAll('style')].map((style) => recoloured(style.textContent));
    sheet.replaceSync(
      styles.join('\n') +
        ':host{display:block}svg{display:block;width:100%;height:auto}.fig .headline{font-size:13px}@media(max-width:46rem){.fig{font-size:14px}}',
    );
    for (const unwanted of drawing.querySelectorAll('style, script, foreignObject')) unwanted.remove();
    root.adoptedStyleSheets = [sheet];
    root.replaceChildren(document.importNode(drawing, true));
  }, [svg]);
  return <div ref={host} />;
}
