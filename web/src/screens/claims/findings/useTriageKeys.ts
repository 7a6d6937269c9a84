import { useEffect, useRef } from 'react';

/** Keys of the queue. They do nothing in fields, menus and dialogs; Enter keeps its meaning on links and other buttons. */
export function useTriageKeys(actions: Record<string, () => unknown>): void {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    // After g a letter names a screen (app/shortcuts.tsx).
    let isAfterG = false;
    const onKey = (event: KeyboardEvent) => {
      const wasAfterG = isAfterG;
      isAfterG = event.key === 'g';
      if (wasAfterG || event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
      const { target } = event;
      if (target instanceof HTMLElement) {
        if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
        if (event.key === 'Enter' && target.matches('a, button:not([aria-current])')) return;
      }
      if (document.querySelector('[role="dialog"], [role="menu"], [role="listbox"]')) return;
      const act = latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}
