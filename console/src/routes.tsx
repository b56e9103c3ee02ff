/** Which page an address names. All but the overview are loaded when they are first opened. */

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { OverviewPage } from './pages/overview/page';
import { Failure } from './parts/notice';

/** What a page is told: the number in its address, if it has one, and all of it. */
export interface PageProps {
  id: number;
  address: URL;
}

type Loader = () => Promise<ComponentType<PageProps>>;

const routes: [RegExp, string, Loader][] = [
  [/^\/submit$/, 'Submit', async () => (await import('./pages/submit/page')).SubmitPage],
  [/^\/w\/(\d+)$/, 'Submission', async () => (await import('./pages/live/page')).LivePage],
  [/^\/w\/(\d+)\/edit$/, 'Edit and submit again', async () => (await import('./pages/edit/page')).EditPage],
  [/^\/runs$/, 'Runs', async () => (await import('./pages/runs/page')).RunsPage],
  [/^\/runs\/(\d+)$/, 'Run', async () => (await import('./pages/run/page')).RunPage],
  [/^\/runs\/(\d+)\/stages\/\d+$/, 'Stage', async () => (await import('./pages/run/one-stage')).StagePage],
  [/^\/matrix$/, 'Matrix', async () => (await import('./pages/matrix/page')).MatrixPage],
  [/^\/compare$/, 'Compare', async () => (await import('./pages/compare/page')).ComparePage],
  [/^\/evaluations$/, 'Evaluations', async () => (await import('./pages/evaluations/page')).EvaluationsPage],
  [/^\/evaluations\/(\d+)$/, 'Evaluation', async () => (await import('./pages/evaluations/one')).EvaluationPage],
  [/^\/audit$/, 'Audit', async () => (await import('./pages/audit/page')).AuditPage],
];

export function Page({ address }: { address: URL }) {
  const path = address.pathname.replace(/(.)\/$/, '$1');
  const route = routes.find(([pattern]) => pattern.test(path));
  const title = path === '/' ? 'Overview' : (route?.[1] ?? 'Not found');
  useEffect(() => {
    document.title = `${title} · Tidemark`;
  }, [title]);
  if (path === '/') return <OverviewPage />;
  if (!route) return <Missing />;
  const id = Number(route[0].exec(path)?.[1] ?? 0);
  return <Lazy key={`${title} ${id}`} load={route[2]} id={id} address={address} />;
}

function Lazy({ load, id, address }: { load: Loader } & PageProps) {
  const [page, set] = useState<{ Content: ComponentType<PageProps> }>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    load().then((Content) => set({ Content }), setError);
  }, []);
  if (error) return <Failure error={error} again={() => location.reload()} />;
  return page ? <page.Content id={id} address={address} /> : <p class="meta">Loading…</p>;
}

function Missing() {
  return (
    <>
      <h1>Page not found</h1>
      <p>
        <a href="/">Go to the overview</a>
      </p>
    </>
  );
}
