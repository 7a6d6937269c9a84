import type { ReactNode } from 'react';
import { Modal as AriaModal, Dialog, Heading, ModalOverlay } from 'react-aria-components';
import { Button } from './Button';
import css from './Modal.module.css';

/** A dialog over the screen; `side` makes it a drawer at the right edge. */
export function Modal({
  title,
  isOpen,
  onClose,
  isDismissable = true,
  side = false,
  children,
}: {
  title: string;
  isOpen: boolean;
  onClose?: () => void;
  isDismissable?: boolean;
  side?: boolean;
  children: ReactNode;
}) {
  return (
    <ModalOverlay
      isOpen={isOpen}
      isDismissable={isDismissable}
      isKeyboardDismissDisabled={!isDismissable}
      onOpenChange={(open) => open || onClose?.()}
      className={`${css.overlay} ${side ? css.sideOverlay : ''}`}
    >
      <AriaModal className={side ? css.drawer : css.modal}>
        <Dialog className={css.dialog}>
          <header className={css.head}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            {isDismissable && (
              <Button kind="quiet" onPress={onClose} aria-label="Close">
                ✕
              </Button>
            )}
          </header>
          {children}
        </Dialog>
      </AriaModal>
    </ModalOverlay>
  );
}
