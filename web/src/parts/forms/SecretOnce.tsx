import type { ReactNode } from 'react';
import { Notice } from '../States';
import { Button } from './Button';
import { CopyButton } from './CopyButton';
import { Modal } from './Modal';
import css from './SecretOnce.module.css';

/** Shows a secret that the service cannot show again. Only the button closes it. */
export function SecretOnce({
  title,
  secret,
  onClose,
  children,
}: {
  title: string;
  secret: string | undefined;
  onClose: () => void;
  children?: ReactNode;
}) {
  return (
    <Modal title={title} isOpen={secret !== undefined} isDismissable={false}>
      <div className={css.body}>
        <Notice kind="warn">Copy it now. It is shown this once and stored nowhere.</Notice>
        <code className={css.secret}>{secret}</code>
        {children}
        <div className={css.actions}>
          <CopyButton text={secret ?? ''} label="Copy" />
          <Button kind="primary" onPress={onClose}>
            I have copied it
          </Button>
        </div>
      </div>
    </Modal>
  );
}
