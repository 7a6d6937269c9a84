import type { ReactNode } from 'react';
import { errorText, isProblem } from '../api/client';
import { Button } from './forms/Button';
import css from './States.module.css';

/** Shown while the first answer is on its way. Grey bars appear after a moment, so that a quick answer does not flicker. */
export function Loading({ label = 'Loading', rows = 4 }: { label?: string; rows?: number }) {
  return (
    <div className={css.loading} role="status" aria-label={label} data-loading>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars never change their order
        <span key={at} className={css.bar} />
      ))}
    </div>
  );
}

/** A request failed: what happened, the request's id for support, and another try. */
export function ErrorState({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <section className={css.state} role="alert">
      <h2>{isProblem(error) ? error.title : 'The request failed'}</h2>
      <p>{errorText(error)}</p>
      {isProblem(error) && error.request_id && (
        <p className={css.small}>
          Request <code>{error.request_id}</code>
        </p>
      )}
      {retry && <Button onPress={retry}>Try again</Button>}
    </section>
  );
}

/** Nothing to show: before the first use, behind a filter, or because all is done. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <section className={css.state}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A sentence above a screen whose figures are old or partial. */
export function Notice({
  kind = 'info',
  children,
}: {
  kind?: 'info' | 'warn' | 'bad' | 'good';
  children: ReactNode;
}) {
  return (
    <div className={`${css.notice} ${css[kind]}`} role={kind === 'bad' ? 'alert' : 'note'}>
      {children}
    </div>
  );
}
