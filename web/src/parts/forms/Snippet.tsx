import { useRef } from 'react';
import { CopyButton } from './CopyButton';
import css from './Snippet.module.css';

/** Text for a terminal, a file or a form, with a button that copies it. */
export function Snippet({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLPreElement>(null);
  return (
    <div className={css.snippet}>
      <div className={css.head}>
        <span>{label}</span>
        <CopyButton text={text} label="Copy" name={`Copy ${label}`} isQuiet source={code} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard */}
      <section className={css.scroll} aria-label={label} tabIndex={0}>
        <pre ref={code} className={css.code}>
          {text}
        </pre>
      </section>
    </div>
  );
}
