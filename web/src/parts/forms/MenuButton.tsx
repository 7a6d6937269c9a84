import { Menu, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import { Button } from './Button';
import css from './MenuButton.module.css';

/** A button that opens a menu of actions. */
export function MenuButton({
  label,
  name,
  isPending = false,
  items,
  onAction,
}: {
  label: string;
  /** For screen readers, where several buttons have the same label. */
  name: string;
  isPending?: boolean;
  items: readonly { id: string; label: string; isDanger?: boolean }[];
  onAction: (id: string) => void;
}) {
  return (
    <MenuTrigger>
      <Button aria-label={name} isPending={isPending}>
        {label} ▾
      </Button>
      <Popover className={css.popover}>
        <Menu className={css.menu} onAction={(key) => onAction(String(key))}>
          {items.map((item) => (
            <MenuItem key={item.id} id={item.id} className={`${css.item} ${item.isDanger ? css.danger : ''}`}>
              {item.label}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}
