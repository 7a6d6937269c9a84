import { useRef, useState } from 'react';
import { Button } from './Button';
import css from './Snippet.module.css';

/** Milliseconds for which the button confirms the copy. */
const CONFIRMED_MS = 2_000;

/** Text for a terminal, a file or a form, with a button that copies it. */
export function Snippet({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLPreElement>(null);
  const [state, setState] = useState<'idle' | 'copied' | 'selected'>('idle');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      // Browsers have no clipboard on an address without TLS: the text is selected, so that the keyboard copies it.
      if (code.current) window.getSelection()?.selectAllChildren(code.current);
      setState('selected');
    }
    setTimeout(() => setState('idle'), CONFIRMED_MS);
  };
  return (
    <div className={css.snippet}>
      <div className={css.head}>
        <span>{label}</span>
        <Button kind="quiet" onPress={() => void copy()} aria-label={`Copy ${label}`}>
          <span role="status">
            {state === 'copied' ? 'Copied' : state === 'selected' ? 'Selected: press Ctrl+C' : 'Copy'}
          </span>
        </Button>
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
