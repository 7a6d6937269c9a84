import { useEffect } from 'react';
import { useLocation } from 'wouter';
import { Modal } from '../parts/forms/Modal';
import { SCREENS } from './screens';
import css from './shortcuts.module.css';

/** Milliseconds within which the second key has to follow g. */
const SECOND_KEY_MS = 1_200;

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Keys that work on every screen. A dialog keeps the keys for itself. */
export function useShortcuts({ search, help }: { search: () => void; help: () => void }): void {
  const [, go] = useLocation();
  useEffect(() => {
    let pressedAt = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'k' && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        search();
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('[role="dialog"], [role="menu"], [role="listbox"]')) return;
      const isSecond = event.timeStamp - pressedAt < SECOND_KEY_MS;
      pressedAt = Number.NEGATIVE_INFINITY;
      if (isSecond) {
        const screen = SCREENS.find((one) => one.shortcut === event.key);
        if (screen) go(screen.path);
      } else if (event.key === 'g') pressedAt = event.timeStamp;
      else if (event.key === '?') help();
      else if (event.key === '/') search();
      else return;
      event.preventDefault();
    };
    // Before the keys of the screen (useKey), which leave alone what is handled here.
    window.addEventListener('keydown', onKey, true);
    return () => window.removeEventListener('keydown', onKey, true);
  });
}

const ELSEWHERE: [string, string][] = [
  ['⌘K or /', 'find a screen, a model, a claim, a call by id'],
  ['j, k', 'next and previous row of a table'],
  ['Enter', 'open the row'],
  ['Esc', 'close what is open'],
  ['t', 'charts as tables and back'],
  ['[, ]', 'previous and next period'],
  ['?', 'this list'],
];

export function ShortcutHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const screens = SCREENS.filter((screen) => screen.shortcut);
  return (
    <Modal title="Keyboard shortcuts" isOpen={isOpen} onClose={onClose}>
      <dl className={css.keys}>
        {ELSEWHERE.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
        {screens.map((screen) => (
          <div key={screen.path}>
            <dt>
              <kbd>g {screen.shortcut}</kbd>
            </dt>
            <dd>{screen.name}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
