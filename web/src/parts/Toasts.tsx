import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from 'react';
import { Button } from './forms/Button';
import css from './Toasts.module.css';

interface Toast {
  id: number;
  text: ReactNode;
  kind: 'good' | 'bad';
}

/** A toast about success leaves after this many milliseconds; one about an error stays until it is closed. */
const GOOD_MS = 6_000;

type Show = (
  text: ReactNode,
  kind?: Toast['kind'],
  options?: { /** Until it is closed. */ stays?: boolean },
) => void;

const ToastContext = createContext<Show>(() => {});

/** Shows a sentence at the edge of the screen and announces it to screen readers. */
export const useToast = () => useContext(ToastContext);

export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const close = useCallback((id: number) => setToasts((before) => before.filter((one) => one.id !== id)), []);
  const add = useCallback<Show>(
    (text, kind = 'good', { stays = false } = {}) => {
      const id = performance.now();
      setToasts((before) => [...before.slice(-3), { id, text, kind }]);
      if (kind === 'good' && !stays) setTimeout(() => close(id), GOOD_MS);
    },
    [close],
  );
  return (
    <ToastContext.Provider value={useMemo(() => add, [add])}>
      {children}
      <div className={css.region} role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className={`${css.toast} ${css[toast.kind]}`}>
            <span>{toast.text}</span>
            <Button kind="quiet" aria-label="Close the message" onPress={() => close(toast.id)}>
              ✕
            </Button>
          </div>
        ))}
      </div>
    </ToastContext.Provider>
  );
}
