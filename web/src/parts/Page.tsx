import { type ReactNode, useEffect } from 'react';
import css from './Page.module.css';

/** A screen: its title, one sentence, the actions at the right, filters, and the content. */
export function Page({
  title,
  lead,
  actions,
  tabs,
  filters,
  children,
}: {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  tabs?: ReactNode;
  filters?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Trueup`;
  }, [title]);
  return (
    <div className={css.page}>
      <header className={css.head}>
        <div>
          <h1>{title}</h1>
          {lead && <p className={css.lead}>{lead}</p>}
        </div>
        {actions && <div className={css.actions}>{actions}</div>}
      </header>
      {tabs}
      {filters && <div className={css.filters}>{filters}</div>}
      {children}
    </div>
  );
}

/** A part of a screen with a heading. */
export function Card({ title, aside, children }: { title?: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className={css.card}>
      {(title || aside) && (
        <header className={css.cardHead}>
          {title && <h2>{title}</h2>}
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}

/** Facts as pairs of a name and a value. */
export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Cards side by side, as many as fit. */
export function Grid({ children, min = 280 }: { children: ReactNode; min?: number }) {
  return (
    <div
      className={css.grid}
      style={{ gridTemplateColumns: `repeat(auto-fill, minmax(min(${min}px, 100%), 1fr))` }}
    >
      {children}
    </div>
  );
}

/** A short word with a colour that repeats its meaning, never the colour alone. */
export function Chip({
  kind = 'plain',
  children,
}: {
  kind?: 'plain' | 'good' | 'warn' | 'bad' | 'accent';
  children: ReactNode;
}) {
  return <span className={`${css.chip} ${css[kind]}`}>{children}</span>;
}
